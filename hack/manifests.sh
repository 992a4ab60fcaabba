#!/usr/bin/env bash
# Writes the manifests of an install to the standard output:
#   hack/manifests.sh FOLDER [NAMESPACE [NAMESPACES [IMAGES [CERTS]]]]
# FOLDER is config, or config/operator for an install without the CRDs. NAMESPACE is the
# operator's own namespace, and NAMESPACES are those, separated by commas, that it is limited
# to; without them it is for the whole cluster. IMAGES is what hack/images.sh prints for a
# kustomization; without it the images have no registry, and the version as their tag. CERTS is
# cert-manager, the default, or self-managed: who issues the certificate of the webhook.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1 namespace=${2:-modelbox-system} namespaces=${3:-} images=${4:-} certs=${5:-cert-manager}
case $certs in
cert-manager) components= ;;
self-managed) components='components: [../../config/certs-self-managed]' ;;
*)
  echo "manifests: CERTS is $certs: it must be cert-manager or self-managed" >&2
  exit 1
  ;;
esac

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
$components
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
