#!/usr/bin/env bash
# Says which images the commands of the Makefile build, push and deploy. The variables:
#
#   IMG              NAME[:TAG], of which the images are NAME-webhook:TAG and NAME-controller:TAG
#   IMG_WEBHOOK, IMG_CONTROLLER   NAME[:TAG][@DIGEST], the image of one process; they win over IMG
#   REGISTRY         without these, what is before modelbox-webhook and modelbox-controller
#   TAG              the tag of a name without one; by default the version
#
#   hack/images.sh build PROCESS    the reference for "docker build", which has no digest
#   hack/images.sh names PROCESS    the same and, for the controller, IMG as it is: who follows an article
#                                   about a project with one image runs "docker push IMG"
#   hack/images.sh push PROCESS     the same for "docker push", with a registry or an account
#   hack/images.sh kustomization    the field images of a kustomization with config as its resource
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  printf 'images: %s\n' "$*" >&2
  exit 1
}

# The grammar of github.com/distribution/reference.
host='([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])'
domain="($host(\\.$host)*|\\[[a-fA-F0-9:]+\\])(:[0-9]+)?"
part='[a-z0-9]+(([_.]|__|-+)[a-z0-9]+)*'
tags='[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}'
digests='[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}'
references="^($domain/)?$part(/$part)*(:$tags)?(@$digests)?\$"

# parse VARIABLE REFERENCE: name, tag and digest of the reference, which is the value of the
# variable.
parse() {
  [[ $2 =~ $references ]] ||
    fail "$1: $2 is not an image reference such as registry.example.com/team/modelbox:v1"
  digest='' tag=''
  name=${2%%@*}
  [ "$name" = "$2" ] || digest=${2#*@}
  # A colon before the last slash is the one of a registry's port.
  if [[ ${name##*/} == *:* ]]; then
    tag=${name##*:} name=${name%:*}
  fi
  # A digest needs no tag.
  [ -n "$tag$digest" ] || tag=$default
}

# image PROCESS: name, tag and digest of the image of a process, and the variable that they
# are from.
image() {
  variable=IMG_WEBHOOK
  [ "$1" = webhook ] || variable=IMG_CONTROLLER
  if [ -n "${!variable:-}" ]; then
    parse "$variable" "${!variable}"
  elif [ -n "${IMG:-}" ]; then
    [ -z "${REGISTRY:-}" ] || fail "IMG and REGISTRY are both set, and both are what the names of the images begin with: set one of them"
    variable=IMG
    parse IMG "$IMG"
    [ -z "$digest" ] || fail "IMG: $IMG has a digest, which is that of one image, and there are two: set IMG_WEBHOOK and IMG_CONTROLLER"
    name=$name-$1
  else
    variable=REGISTRY
    parse REGISTRY "${REGISTRY:-}modelbox-$1"
  fi
}

# reference PROCESS: the reference of an image that is built here.
reference() {
  image "$1"
  [ -z "$digest" ] || fail "$variable: ${!variable} has a digest, which an image has after it was built and pushed: set a tag; only make deploy and make install.yaml accept a digest"
  printf '%s:%s\n' "$name" "$tag"
}

kustomization() {
  printf 'images:\n'
  for process in webhook controller; do
    image $process
    [[ $name == */* ]] || printf 'images: no registry has %s: only nodes into which it was loaded run it (kind load docker-image); with a registry, set IMG=registry.example.com/team/modelbox:v1\n' \
      "$name" >&2
    printf -- '- name: modelbox-%s\n  newName: "%s"\n  newTag: "%s"\n  digest: "%s"\n' $process "$name" "$tag" "$digest"
  done
}

default=${TAG:-$(cat internal/version/VERSION)}
[[ $default =~ ^$tags$ ]] || fail "TAG: $default is not a tag: letters, digits, \"_\", \".\" and \"-\", at most 128"
if [ -n "${IMG_WEBHOOK:-}" ] && [ "$IMG_WEBHOOK" = "${IMG_CONTROLLER:-}" ]; then
  fail "IMG_WEBHOOK and IMG_CONTROLLER are both $IMG_WEBHOOK, and each process has an image of its own"
fi
use=${1:-}
case $use in
build | names | push)
  # Both are checked before the first of them is built.
  for process in webhook controller; do
    built=$(reference $process)
    [ "$use" != push ] || [[ $built == */* ]] ||
      fail "$built has no registry to push to: set IMG=registry.example.com/team/modelbox:v1 or REGISTRY=registry.example.com/team/"
  done
  reference "$2"
  if [ "$use $2" = "names controller" ] && [ -n "${IMG:-}" ] && [ -z "${IMG_CONTROLLER:-}" ] && [ "$IMG" != "${IMG_WEBHOOK:-}" ]; then
    printf '%s\n' "$IMG"
  fi
  ;;
kustomization) kustomization ;;
*) fail "hack/images.sh build PROCESS, names PROCESS, push PROCESS or kustomization" ;;
esac
