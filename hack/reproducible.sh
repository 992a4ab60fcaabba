#!/usr/bin/env bash
# Compares two builds of each image, REGISTRY/modelbox-* and again/modelbox-*, and
# removes the second. "make reproducible" runs it.
#
#   hack/reproducible.sh VERSION [REGISTRY]
set -euo pipefail
docker=${DOCKER:-docker} version=$1 registry=${2:-}

for process in webhook controller; do
  name=modelbox-$process:$version
  for what in RootFS.Layers Config Id; do
    first=$($docker image inspect -f "{{json .$what}}" "$registry$name")
    second=$($docker image inspect -f "{{json .$what}}" "again/$name")
    if [ "$first" = "$second" ]; then
      echo "$name: $what is the same"
    elif [ "$what" = Id ]; then
      # Docker before 23 writes the time of the build into an image.
      echo "$name: the digests differ by the times of the builds, which this docker writes into the image:" \
        "$($docker image inspect -f '{{.Created}}' "$registry$name" "again/$name" | tr '\n' ' ')"
    else
      printf '%s: %s differs:\n  %s\n  %s\n' "$name" "$what" "$first" "$second" >&2
      exit 1
    fi
  done
  $docker image rm "again/$name" >/dev/null
done
