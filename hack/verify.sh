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
for module in bench/ fetch/ hack/tools/*/; do (cd "$module" && go mod tidy); done
if [ "$before" != "$(fingerprint)" ]; then
  echo "verify: generated files were not up to date; they are now, so commit them:" >&2
  git status --short >&2
  exit 1
fi
echo "verify: generated files are up to date"
make --no-print-directory lint
echo "verify: the linters found nothing"
./hack/vulnerabilities.sh
