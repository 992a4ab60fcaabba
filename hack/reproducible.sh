#!/usr/bin/env bash
# Compares two builds of each image, that of hack/images.sh and again/modelbox-*, and
# removes the second. "make reproducible" runs it.
set -euo pipefail
cd "$(dirname "$0")/.."
docker=${DOCKER:-docker}
again() { IMG='' IMG_WEBHOOK='' IMG_CONTROLLER='' REGISTRY=again/ ./hack/images.sh "$@"; }

for process in webhook controller; do
  name=$(./hack/images.sh build $process)
  second_name=$(again build $process)
  for what in RootFS.Layers Config Id; do
    first=$($docker image inspect -f "{{json .$what}}" "$name")
    second=$($docker image inspect -f "{{json .$what}}" "$second_name")
    if [ "$first" = "$second" ]; then
      echo "$name: $what is the same"
    elif [ "$what" = Id ]; then
      # Docker before 23 writes the time of the build into an image.
      echo "$name: the digests differ by the times of the builds, which this docker writes into the image:" \
        "$($docker image inspect -f '{{.Created}}' "$name" "$second_name" | tr '\n' ' ')"
    else
      printf '%s: %s differs:\n  %s\n  %s\n' "$name" "$what" "$first" "$second" >&2
      exit 1
    fi
  done
  $docker image rm "$second_name" >/dev/null
done
