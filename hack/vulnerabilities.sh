#!/usr/bin/env bash
# Fails if code that the two processes or fetch-model call has a known vulnerability, in a dependency or in
# Go itself. The vulnerabilities are those of https://vuln.go.dev, or of GOVULNDB, which may be
# a folder (file:///path). Where neither can be reached, nothing is checked, and a line says so.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$PWD/hack/tools/lint/go.mod
check() { go tool -modfile="$tools" govulncheck -db "${GOVULNDB:-https://vuln.go.dev}" "$@"; }

# A package without dependencies: it only shows whether the database can be read.
if ! output=$(check ./internal/version 2>&1) && grep -q 'fetching vulnerabilities' <<<"$output"; then
  echo "vulnerabilities: skipped: the database cannot be reached (${output#*fetching vulnerabilities: })"
  exit 0
fi
check ./webhook ./controller
(cd fetch && check .)
echo "vulnerabilities: none is known in the code that the programs of the images call"
