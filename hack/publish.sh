#!/usr/bin/env bash
# Pushes what "make release" has written into a directory: the images, with the digests that install.yaml
# and the chart have, and the chart. Signs each of them if COSIGN_FLAGS is set. "docker login" is enough
# for skopeo, helm and cosign.
#
#   VERSION, REGISTRY, COSIGN_FLAGS
#   hack/publish.sh DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/.."
dist=${1:?"hack/publish.sh DIRECTORY"}
: "${REGISTRY:?"is what comes before modelbox-webhook, such as registry.example.com/team/, and the one of the release"}"
# shellcheck disable=SC2086
sign() { [ -z "${COSIGN_FLAGS:-}" ] || cosign sign $COSIGN_FLAGS "$1"; }

for process in webhook controller; do
  image=$(./hack/images.sh push $process)
  reference=$(grep -om 1 "image: $image@sha256:[0-9a-f]*" "$dist/install.yaml") ||
    { echo "publish: $dist/install.yaml has not the image $image: it is of another version or REGISTRY" >&2 && exit 1; }
  skopeo copy --all --preserve-digests "oci-archive:$dist/modelbox-$process-$VERSION.tar" "docker://$image"
  sign "${reference#image: }"
done
# helm prints the name and the digest of what it has pushed.
pushed=$(helm push "$dist/modelbox-operator-${VERSION#v}.tgz" "oci://${REGISTRY}charts" 2>&1) || { echo "$pushed" >&2 && exit 1; }
echo "$pushed"
sign "${REGISTRY}charts/modelbox-operator@$(sed -n 's/^Digest: //p' <<<"$pushed")"
