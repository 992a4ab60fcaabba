#!/usr/bin/env bash
# Writes the manifests of an install to the standard output:
#   hack/manifests.sh FOLDER [NAMESPACE [NAMESPACES [IMAGES [CERTS [KINDS]]]]]
# FOLDER is config, or config/operator for an install without the CRDs. NAMESPACE is the
# operator's own namespace, and NAMESPACES are those, separated by commas, that it is limited
# to; without them it is for the whole cluster. IMAGES is what hack/images.sh prints for a
# kustomization; without it the images have no registry, and the version as their tag. CERTS is
# cert-manager, the default, or self-managed: who issues the certificate of the webhook. KINDS are
# the kinds of the install, separated by commas; all by default.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1 namespace=${2:-modelbox-system} namespaces=${3:-} images=${4:-} certs=${5:-cert-manager} kinds=${6:-}
case $certs in
cert-manager) components= ;;
self-managed) components=../../config/certs-self-managed, ;;
*)
  echo "manifests: CERTS is $certs: it must be cert-manager or self-managed" >&2
  exit 1
  ;;
esac
if [ -n "$kinds" ]; then
  kept=$(tr '[:upper:],' '[:lower:]\n' <<<"$kinds") all=$(cd config/without && ls)
  if unknown=$(grep -vxF "$all" <<<"$kept"); then
    echo "manifests: KINDS has" $unknown: each must be one of $all >&2
    exit 1
  fi
  components+=$(grep -vxF "$kept" <<<"$all" | sed 's|.*|../../config/without/&,|' || true)
fi

mkdir -p dist
overlay=$(mktemp -d dist/overlay.XXXXXX)
trap 'rm -rf "$overlay"' EXIT

kustomization() {
  cat <<END
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- ../../$folder
$images
components: [$components]
namespace: $namespace
transformers:
- ../../config/fetch-image
- ../../config/namespaced
END
}

rendered() {
  kustomization >"$overlay/kustomization.yaml"
  kubectl kustomize "$overlay"
}

if [ -z "$namespaces" ]; then
  rendered
else
  IFS=, read -ra names <<<"$namespaces"
  rendered | go run ./hack/namespaced "${names[@]}"
fi
