#!/usr/bin/env bash
# Runs the generators and the linters (gosec is one of them), and looks for known
# vulnerabilities. Fails if a generated file has changed: then it was not committed as the
# generators write it.
set -euo pipefail
cd "$(dirname "$0")/.."

fingerprint() {
  {
    git diff HEAD
    git ls-files --others --exclude-standard -z | xargs -0 -r sha256sum
  } | sha256sum
}

before=$(fingerprint)
./hack/generate.sh
go mod tidy
git ls-files '*/go.mod' | xargs -n 1 dirname | while read -r module; do (cd "$module" && go mod tidy); done
if [ "$before" != "$(fingerprint)" ]; then
  echo "verify: generated files were not up to date; they are now, so commit them:" >&2
  git status --short >&2
  exit 1
fi
echo "verify: generated files are up to date"
# With other versions of a dependency, the control plane, the product and the tests would compile it
# each on their own.
used() {
  go list -C "$1" -deps -f '{{with .Module}}{{with or .Replace .}}{{if .Version}}{{.Path}} {{.Version}}{{end}}{{end}}{{end}}' "${@:2}" | sort -u
}
if ! join <(used . ./webhook ./controller ./cli) <(used hack/tools/kube tool) |
  awk '$2 != $3 {print "verify: " $1 " is " $2 " in go.mod, and " $3 " in hack/tools/kube/go.mod"; different = 1} END {exit different || !NR}'; then
  exit 1
fi
# The chart is the install, whatever its values are; GitOps tools read each status as documented.
assets=$(./hack/binaries.sh)
(cd hack/tools/e2e && KUBEBUILDER_ASSETS=$assets go test ./...)
make --no-print-directory lint
echo "verify: the linters found nothing"
./hack/vulnerabilities.sh
