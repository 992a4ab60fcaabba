#!/usr/bin/env bash
# "make test-versions": whether the operator can be installed and works on other versions of
# Kubernetes, of hack/tools/kube/versions:
#   hack/test-versions.sh VERSION...
# On each, the whole install is applied as a user would, and then the suites that need an API server,
# and the demo, run; one spec has an API server of the default version beside it. A spec of what a
# version does not have skips itself, and says why. With QUICK=1, only what takes less than a minute:
# the install, the webhook, the policies and the commands.
set -euo pipefail
cd "$(dirname "$0")/.."
export CLUSTER=modelbox-versions
cluster=hack/local/cluster.sh
dir=$(mktemp -d)
trap '$cluster down; rm -rf "$dir"' EXIT

kubectl() { "$MODELBOX_BINARIES/kubectl" --kubeconfig "bin/kubeconfig-$CLUSTER" "$@"; }
# await WHAT COMMAND... waits until a command succeeds.
await() {
  local end=$((SECONDS + 60))
  until "${@:2}"; do
    [ $SECONDS -lt $end ] || { echo "waiting for $1: 60 s are over" >&2 && return 1; }
    sleep 0.2
  done
}
# checked: whether each policy was compiled. kube-controller-manager does that, and writes what it found
# to its status.
checked() {
  local policies='{range .items[*]}{.metadata.generation}={.status.observedGeneration}{"\n"}{end}'
  ! kubectl get validatingadmissionpolicies -o jsonpath="$policies" | grep -qvE '^([0-9]+)=\1$'
}
install() {
  $cluster down
  $cluster up
  PATH=$MODELBOX_BINARIES:$PATH hack/manifests.sh config "" "" "" self-managed >"$dir/install.yaml"
  kubectl apply -f "$dir/install.yaml" >/dev/null
  kubectl wait --for=condition=Established --timeout=60s crd --all >/dev/null
  await "the policies to be compiled" checked
  warnings=$(kubectl get validatingadmissionpolicies -o jsonpath='{.items[*].status.typeChecking.expressionWarnings}')
  [ -z "$warnings" ] || { echo "type-checking warnings of policies: $warnings" >&2 && return 1; }
  kubectl apply -f "$dir/install.yaml" >/dev/null # An upgrade in place.
  $cluster down
}
suites() {
  go test -vet=off -count 1 -timeout 15m ./webhook ./test/integration
  go tool ginkgo --no-color --procs 2 --timeout 30m ${GINKGOFLAGS:-} controller/controller.test -- -test.run='^TestController$'
}
quick() {
  go test -vet=off -count 1 ./webhook -run '^TestWebhook$' -ginkgo.focus 'a ModelBox at admission|an invalid object|sample stays .* client-side' &
  go test -vet=off -count 1 ./test/integration -run 'MayUse|UsersChange|WhatAFreeze|Permission|Subresources|TestPlan$|TestAdopt$|TestStatus$|TheLease|NoOtherKind'
  wait $!
}
# timed COMMAND... is a line with the time that it took.
timed() {
  local from=$SECONDS
  "$@"
  echo "--- $version: $*: $((SECONDS - from)) s"
}

checks=(quick)
if [ -z "${QUICK:-}" ]; then
  checks=(suites hack/local/demo.sh)
  go test -vet=off -c -o controller/controller.test ./controller
fi
MODELBOX_OTHER_ASSETS=$(hack/binaries.sh)
export MODELBOX_OTHER_ASSETS
for version in "$@"; do
  assets=$(hack/binaries.sh "$version")
  export MODELBOX_BINARIES=$assets KUBEBUILDER_ASSETS=$assets
  for check in install "${checks[@]}"; do timed "$check"; done
  unset MODELBOX_BINARIES
done
