#!/usr/bin/env bash
# "make test-race": runs the tests of the packages that are concurrent with the race detector, which
# needs cgo and a C compiler; with arguments, those of these packages.
#   hack/test-race.sh [PACKAGE...]
set -euo pipefail
cd "$(dirname "$0")/.."
: "${KUBEBUILDER_ASSETS:?is the directory of kube-apiserver and etcd: run make test-race}"
export CGO_ENABLED=1
if [ $# -gt 0 ]; then
  exec go test -race -vet=off -timeout 30m ${TESTFLAGS:-} "$@"
fi
failed=
go test -race -vet=off -timeout 30m ${TESTFLAGS:-} ./webhook/... ./controller/... -skip '^TestController$' || failed=yes
# The specs of what several goroutines share; "make test" runs all of them without the detector.
go test -race -vet=off -timeout 30m ${TESTFLAGS:-} ./controller -run '^TestController$' \
  -ginkgo.focus '(every kind|controller an? (ModelBox|App|Genericdaemon|UnitedDeployment|Eru)) ' || failed=yes
[ -z "$failed" ]
