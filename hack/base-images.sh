#!/usr/bin/env bash
# Writes into hack/base-images.mk the digests that the tags of the base images have in their
# registries now, or into another FILE of that form. "make base-images" runs it.
#
#   hack/base-images.sh [FILE]
set -euo pipefail
cd "$(dirname "$0")/.."
file=${1:-hack/base-images.mk}
crane() { go tool -modfile=hack/tools/e2e/go.mod crane "$@"; }

new=$(mktemp)
trap 'rm -f "$new"' EXIT
while read -r line; do
  if [[ $line =~ ^([A-Z_]+)\ \?=\ ([^@]+)@(sha256:[0-9a-f]{64})$ ]]; then
    name=${BASH_REMATCH[1]} tag=${BASH_REMATCH[2]} old=${BASH_REMATCH[3]}
    digest=$(crane digest "$tag") # Of the index, which has an image for each platform.
    line="$name ?= $tag@$digest"
    [ "$digest" = "$old" ] && echo "$tag: unchanged" >&2 || echo "$tag: $digest, was $old" >&2
  fi
  printf '%s\n' "$line"
done <"$file" >"$new"
cat "$new" >"$file"
