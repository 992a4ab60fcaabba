#!/usr/bin/env bash
# "make test": runs every test that needs no container engine. The last lines are what failed.
# TESTFLAGS are the flags of "go test", and GINKGOFLAGS those of ginkgo, which runs the controller's
# suite. "make verify" vets, "make test-race" has the race detector, and "make test-long" tries all
# cases of what is sampled here.
set -uo pipefail
cd "$(dirname "$0")/.."
: "${KUBEBUILDER_ASSETS:?is the directory of kube-apiserver and etcd: run make test}"

logs=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$logs"' EXIT
gotest() { go test -vet=off -timeout 15m ${TESTFLAGS:-} "$@"; }

packages() {
  local failed=0
  gotest $(go list ./... | grep -v '/controller$') || failed=1
  for module in bench fetch; do
    (cd "$module" && gotest ./...) || failed=1
  done
  return $failed
}
# The suite waits for about as long as it computes. So its specs run in two processes, each with a
# control plane of its own, while the other packages are tested. ginkgo would hide what fails in
# the tests outside of the suite, so these run before.
controller() {
  gotest -o controller/controller.test -skip '^TestController$' ./controller || return
  go tool ginkgo --no-color --procs 2 --timeout 20m ${GINKGOFLAGS:-} controller/controller.test -- -test.run='^TestController$'
}
part() {
  local from=$SECONDS result=ok
  "$@" 2>&1 | tee "$logs/$1.log" | sed -E '/no test files/d' || { result=FAILED && echo "$1" >>"$logs/failed"; }
  echo "test: $*: $result, $((SECONDS - from)) s"
}
part packages &
part controller
wait

[ -e "$logs/failed" ] || exit 0
echo
grep -hE -A 12 '^ *(--- FAIL|\[(FAILED|PANICKED|TIMEDOUT)\]|panic:|[^ ]+\.go:[0-9]+:[0-9]+: )|^FAIL' "$logs"/*.log | tail -n 80
echo "test: FAILED: $(paste -sd ' ' "$logs/failed")"
exit 1
