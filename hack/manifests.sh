#!/usr/bin/env bash
# Writes the manifests of an install to the standard output:
#   hack/manifests.sh FOLDER [NAMESPACE [NAMESPACES]]
# FOLDER is config, or config/operator for an install without the CRDs. NAMESPACE is the
# operator's own namespace, and NAMESPACES are those, separated by commas, that it is limited
# to; without them it is for the whole cluster.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1 namespace=${2:-modelbox-system} namespaces=${3:-}

rendered() {
  if [ "$namespace" = modelbox-system ]; then
    kubectl kustomize "$folder"
    return
  fi
  local overlay=dist/overlay
  mkdir -p $overlay
  cat >$overlay/kustomization.yaml <<END
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: $namespace
resources:
- ../../$folder
transformers:
- ../../config/namespaced
END
  kubectl kustomize $overlay
}

if [ -z "$namespaces" ]; then
  rendered
else
  IFS=, read -ra names <<<"$namespaces"
  rendered | go run ./hack/namespaced "${names[@]}"
fi
