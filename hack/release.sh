#!/usr/bin/env bash
# Writes the files of a release into a folder: for each image an OCI image layout and the
# SBOMs, install.yaml and the Helm chart with the images by digest, the command modelbox for each
# platform, and the checksums of all of these, with a signature if there is a key. "make release" runs
# it, and sets the variables.
#
#   VERSION, REGISTRY, PLATFORMS, CLI_PLATFORMS, DOCKER, DOCKER_BUILD_ARGS
#   IMG, IMG_WEBHOOK, IMG_CONTROLLER, TAG   refused: they cannot change a release
#   COSIGN_KEY     a key that cosign accepts (file or KMS URI); without it nothing is signed
#   COSIGN, COSIGN_FLAGS   the command, and more flags of "cosign sign-blob"
#   hack/release.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
dist=${1:?"hack/release.sh FOLDER"}
cosign=${COSIGN:-cosign}
if [ -n "${COSIGN_KEY:-}" ] && ! command -v "$cosign" >/dev/null; then
  echo "release: COSIGN_KEY is set, and there is no command $cosign: install it" \
    "(go install github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3), or set COSIGN to it" >&2
  exit 1
fi
if [ -n "${IMG:-}${IMG_WEBHOOK:-}${IMG_CONTROLLER:-}" ]; then
  echo "release: IMG, IMG_WEBHOOK and IMG_CONTROLLER cannot be set: the images of a release are" \
    "modelbox-webhook and modelbox-controller; set REGISTRY=registry.example.com/team/ for where install.yaml finds them" >&2
  exit 1
fi
if [ "${TAG:-$VERSION}" != "$VERSION" ]; then
  echo "release: TAG is $TAG, and the tag of a release is its version, $VERSION, which is in internal/version/VERSION" >&2
  exit 1
fi
created=$(git log -1 --format=%ct)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$dist"
mkdir -p "$dist"
(cd hack/tools/release && go build -o "$work/release" .)

images=() flags=()
for process in webhook controller; do
  name=modelbox-$process
  archives=()
  for platform in $PLATFORMS; do
    echo "release: building $name for $platform"
    # The platform is part of the tag, so that no build takes the place of another.
    tag=$name:$VERSION-${platform//\//-}
    # shellcheck disable=SC2086
    $DOCKER build --quiet --platform "$platform" -f "Dockerfile.$process" -t "$tag" $DOCKER_BUILD_ARGS . >/dev/null
    $DOCKER save -o "$work/${tag/:/-}.tar" "$tag"
    $DOCKER image rm "$tag" >/dev/null
    archives+=("$work/${tag/:/-}.tar")
  done
  digest=$("$work/release" -name "$name" -version "$VERSION" -created "$created" -out "$dist" "${archives[@]}")
  images+=("$REGISTRY$name:$VERSION@$digest")
  flags+=("-$process" "$REGISTRY$name@$digest")
done
fields=$(IMG_WEBHOOK=${images[0]} IMG_CONTROLLER=${images[1]} ./hack/images.sh kustomization)
./hack/manifests.sh config "" "" "$fields" >"$dist/install.yaml"

# The archive that "helm package" makes has the time of the build.
go run ./hack/chart "${flags[@]}" "$work/chart/modelbox-operator"
tar --create --directory "$work/chart" --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
  --mtime="@$created" modelbox-operator | gzip -n9 >"$dist/modelbox-operator-${VERSION#v}.tgz"

for platform in $CLI_PLATFORMS; do
  echo "release: building modelbox for $platform"
  suffix=
  [ "${platform%/*}" != windows ] || suffix=.exe
  CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/} go build -trimpath -buildvcs=false -ldflags="-s -w -buildid=" \
    -o "$dist/modelbox-$VERSION-${platform//\//-}$suffix" ./cli
done
cp SECURITY.md LICENSE "$dist/"

(cd "$dist" && sha256sum -- * >SHA256SUMS)
if [ -n "${COSIGN_KEY:-}" ]; then
  # shellcheck disable=SC2086
  (key=$COSIGN_KEY && [ -f "$key" ] && key=$(realpath "$key"); cd "$dist" &&
    "$cosign" sign-blob --yes --key "$key" --bundle SHA256SUMS.sigstore.json ${COSIGN_FLAGS:-} SHA256SUMS)
else
  echo "release: not signed: COSIGN_KEY is not set"
fi
ls -l "$dist"
