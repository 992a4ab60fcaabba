#!/usr/bin/env bash
# Runs every native fuzz target of the project for FUZZTIME (30s) each.
set -euo pipefail
cd "$(dirname "$0")/.."
# By default an input that is new is made smaller for up to a minute, which is all of the time for
# targets that write files.
grep -rlE '^func Fuzz' --include='*_test.go' cron kinds webhook controller fetch | while read -r file; do
  sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$file" | while read -r target; do
    echo "fuzz: $target in $(dirname "$file")"
    (cd "$(dirname "$file")" && go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-30s}" -fuzzminimizetime 100x -parallel "${FUZZPARALLEL:-2}" .)
  done
done
seed=${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
# Histories of one ModelBox under several clients, from a new seed.
echo "fuzz: TestHistories in kinds/modelbox -first-seed $seed"
go test ./kinds/modelbox -run '^TestHistories$' -timeout 2h -count 1 -v -args -seeds "${HISTORIES:-1000}" -first-seed "$seed"
