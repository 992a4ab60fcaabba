#!/usr/bin/env bash
# Runs every test that needs no container engine: "make test". A part that fails does not keep
# the next one from running; the last lines are its failures, and the names of the parts that
# failed. TESTFLAGS are the flags of "go test", GINKGOFLAGS those of ginkgo, which runs the
# controller's suite.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${KUBEBUILDER_ASSETS:?is the folder of kube-apiserver and etcd: run make test}"

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
failed=()
part() {
  local name=$1 from=$SECONDS result=ok
  shift
  "$@" 2>&1 | tee "$logs/part" || {
    result=FAILED && failed+=("$name")
    cat "$logs/part" >>"$logs/failed"
  }
  echo "test: $name: $result, $((SECONDS - from)) s"
}
# why prints again what failed, for a reader who has only the end of the output.
why() {
  grep -E -A 12 '^ *(--- FAIL|\[(FAILED|PANICKED|TIMEDOUT)\]|panic:|WARNING: DATA RACE|[^ ]+\.go:[0-9]+:[0-9]+: )' "$logs/failed" | tail -n 60
}

# The controller's suite waits for about as long as it computes, so its specs run in several
# processes, each with a control plane of its own (about 1 GiB).
suite() {
  go tool ginkgo --no-color --procs 3 --timeout 25m "$@" ${GINKGOFLAGS:-} controller/controller.test -- -test.run='^TestController$'
}

# Long tests of pure functions, which the race detector makes ten times slower: they run without
# it, all cases of them. Shorter tests of the same functions, also concurrent ones, run with it.
pure='TestEveryChange|TestAnyChange|TestCorrection|TestCalendar|TestHistories|TestAnyObject|TestDecodersAgree|TestDecodersAgreeOnDepth'
without_race() {
  local files
  files=$(grep -rlE --include='*_test.go' "^func ($pure)\(" cron webhook controller)
  go test -run "^($pure)$" $(xargs -n 1 dirname <<<"$files" | sort -u | sed 's|^|./|')
}
# The race detector allocates too, so what is counted, and what one request or connection costs,
# is measured without it.
measured() {
  go test -run 'TestAllocations|TestMemory|TestAttacks|TestTenAtOnce|TestCost|TestALargeObject' \
    ./cron ./webhook ./webhook/admission ./kinds/patch ./controller/modelbox
}

# The longest suite begins first. Those that start a control plane wait for it, so there are more at
# a time than processors.
packages() { go test ${TESTFLAGS:-} -p 3 -skip "^($pure)$" ./webhook $(go list ./... | grep -v '/controller$\|/webhook$'); }
# The tests of the controller's package that are not in its suite: ginkgo would hide what fails in
# them. The binary stays for the suite, which runs twice.
controller() { go test ${TESTFLAGS:-} -skip '^TestController$' -o controller/controller.test ./controller; }
# The controller's informer cache is optional: the main specs of each kind pass with
# controller-runtime's too.
stock_cache() {
  CACHE=stock suite --label-filter '!cache' \
    --focus '(every kind|controller an? (ModelBox|App|Genericdaemon|UnitedDeployment|Eru)) '
}
module() { (cd "$1" && go test ${TESTFLAGS:-} ./...); }
# -count 1, because the chart is not in the module of its tests, and Go would take their cached
# results after a change of it.
without_detector() { (cd "$1" && go test -count 1 ./...); }

part packages packages
part controller controller
part "the controller's suite" suite
part "the controller's suite with CACHE=stock" stock_cache
part "without the race detector" without_race
part costs measured
part bench module bench
part fetch module fetch
# These two have one goroutine. Helm's library is large, and the tests of a release compress their
# own program, which the race detector makes ten times slower.
part hack/tools/release without_detector hack/tools/release
part hack/tools/chart without_detector hack/tools/chart
part hack/tools/promql module hack/tools/promql

if [ ${#failed[@]} -gt 0 ]; then
  why || echo "test: what failed printed no failure of a test"
  (IFS=, && printf 'test: FAILED: %s\n' "${failed[*]}") >&2
  exit 1
fi
