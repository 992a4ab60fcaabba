#!/usr/bin/env bash
# Writes the files of a release into a directory: for each image an OCI archive of all platforms with
# SBOMs and provenance as attestations, install.yaml (install-self-managed.yaml needs no cert-manager) and
# the Helm chart with the images by digest, the command modelbox for each platform, also for krew, a JSON Schema of
# each kind, and the checksums of all of these, signed if COSIGN_FLAGS is set. hack/publish.sh pushes the images and the chart.
#
#   VERSION, REGISTRY, PLATFORMS, CLI_PLATFORMS, DOCKER, DOCKER_BUILD_ARGS, COSIGN_FLAGS
#   hack/release.sh DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/.."
dist=${1:?"hack/release.sh DIRECTORY"}
if [ -n "${IMG:-}${IMG_WEBHOOK:-}${IMG_CONTROLLER:-}" ] || [ "${TAG:-$VERSION}" != "$VERSION" ]; then
  echo "release: set REGISTRY alone: the images are modelbox-webhook and modelbox-controller, and their tag is $VERSION" >&2
  exit 1
fi
rm -rf "$dist" && mkdir -p "$dist/chart"
cp -R charts/modelbox-operator "$dist/chart/"
for process in webhook controller; do
  name=modelbox-$process
  # shellcheck disable=SC2086
  ${DOCKER:-docker} buildx build --platform "${PLATFORMS// /,}" --sbom=true --provenance=true -f "Dockerfile.$process" \
    --output "type=oci,dest=$dist/$name-$VERSION.tar,rewrite-timestamp=true" --metadata-file "$dist/metadata" $DOCKER_BUILD_ARGS .
  digest=$(sed -nE 's/.*"containerimage.digest": *"(sha256:[0-9a-f]{64})".*/\1/p' "$dist/metadata")
  export "IMG_${process^^}=$REGISTRY$name:$VERSION@${digest:?"$DOCKER wrote no digest"}"
  sed -i.bak -e "/^$process:/,/^ *digest:/{s|repository: .*|repository: $REGISTRY$name|;s|digest: .*|digest: $digest|;}" "$dist/chart/modelbox-operator/values.yaml"
done
images=$(./hack/images.sh kustomization)
./hack/manifests.sh config "" "" "$images" >"$dist/install.yaml"
./hack/manifests.sh config "" "" "$images" self-managed >"$dist/install-self-managed.yaml"
rm "$dist/metadata" "$dist/chart/modelbox-operator/values.yaml.bak"
tar -c --sort=name --mtime="@$(git log -1 --format=%ct)" --owner=0 --group=0 --numeric-owner -C "$dist/chart" modelbox-operator |
  gzip -n >"$dist/modelbox-operator-${VERSION#v}.tgz" && rm -r "$dist/chart"
for platform in $CLI_PLATFORMS; do
  CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/} go build -trimpath -buildvcs=false -ldflags="-s -w -buildid=" \
    -o "$dist/modelbox-$VERSION-${platform//\//-}$([ "${platform%/*}" != windows ] || echo .exe)" ./cli
done
./hack/krew.sh "$dist"
go run ./hack/schemas "$dist"
cp SECURITY.md LICENSE "$dist/"
(cd "$dist" && sha256sum -- * >SHA256SUMS)
# shellcheck disable=SC2086
[ -z "${COSIGN_FLAGS:-}" ] || cosign sign-blob $COSIGN_FLAGS --bundle "$dist/SHA256SUMS.sigstore.json" "$dist/SHA256SUMS"
