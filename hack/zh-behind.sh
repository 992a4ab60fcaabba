#!/usr/bin/env bash
# Lists the Chinese pages that are behind: those whose English page has a later commit.
set -euo pipefail
cd "$(dirname "$0")/.."
changed() { git log -1 --format="${2:-%ct}" -- "$1"; }
for chinese in README.zh-CN.md docs/zh-CN/*.md; do
  english=docs/$(basename "$chinese")
  [ "$chinese" != README.zh-CN.md ] || english=README.md
  [ -f "$english" ] || continue # The glossary has no English page.
  if [ "$(changed "$english")" -gt "$(changed "$chinese")" ]; then
    echo "$chinese is of $(changed "$chinese" %cs), and $english of $(changed "$english" %cs)"
  fi
done
