#!/usr/bin/env bash
# Copyright The ModelBox Operator Authors.
# SPDX-License-Identifier: Apache-2.0

# Records what a version of the operator stores, for the test of upgrades: see README.md.
#
#   record.sh VERSION FILE...
#
# VERSION is a tag such as v1.2.3, whose webhook and controller run on the cluster of the current
# context. The first document of each FILE is a manifest. Its first lines are comments with the
# request that writes it ("kubectl ..."), sed programs for manifests that are written before it
# ("first: ..."), and the requests that follow ("then: ..."). A folder VERSION beside this script
# gets the manifest, the stored object and its children.
set -euo pipefail

version=$1
shift
namespace=${version//./-}
out=$(dirname "$0")/$version
mkdir -p "$out"

k() { kubectl --namespace "$namespace" "$@"; }

manifest() { sed '/^---$/,$d' "$1"; }

# lines FILE KEY: what follows a key in the comments of a manifest.
lines() { manifest "$1" | sed -n "s/^# $2 *//p"; }

# store FILE: writes the manifest, and prints kind/name.
store() {
  local request program line
  request=$(lines "$1" kubectl | sed 's/#.*//')
  while read -r program; do
    manifest "$1" | sed "$program" | k $request -f - >&2
    sleep 5
  done < <(lines "$1" first:)
  manifest "$1" | k $request -f - -o name
  while read -r line; do
    sleep 5
    eval "k ${line#kubectl }" >&2
  done < <(lines "$1" then:)
}

# get ARG...: an object as it is stored. It has a resourceVersion only in a response.
get() { k get "$@" --show-managed-fields --output yaml | sed '/^  resourceVersion:/d'; }

kubectl create namespace "$namespace" --dry-run=client --output yaml | kubectl apply --filename - >&2
declare -A names
for file in "$@"; do
  names[$file]=$(store "$file" </dev/null)
done
sleep 15 # Until the pods are ready.
for file in "$@"; do
  {
    manifest "$file"
    echo ---
    get "${names[$file]}"
    for child in deployment daemonset service; do
      if k get "$child/${names[$file]#*/}" >/dev/null 2>&1; then
        echo ---
        get "$child/${names[$file]#*/}" | sed '/^status:/,$d' # It is that of Kubernetes' controllers.
      fi
    done
  } >"$out/$(basename "$file")"
done
