#!/usr/bin/env bash
# Writes what krew (https://krew.sigs.k8s.io) installs "kubectl modelbox" from: for each program modelbox in the
# directory of a release an archive, and the manifest modelbox.yaml with their checksums. The same commit gives the same archives.
#
#   VERSION, GITHUB_SERVER_URL and GITHUB_REPOSITORY, where the release is
#   hack/krew.sh DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/.."
dist=${1:?"hack/krew.sh DIRECTORY"}
downloads=${GITHUB_SERVER_URL:-https://github.com}/${GITHUB_REPOSITORY:-modelbox-operator/modelbox-operator}/releases/download/$VERSION
cat >"$dist/modelbox.yaml" <<END
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: modelbox
spec:
  version: $VERSION
  homepage: https://github.com/modelbox-operator/modelbox-operator
  shortDescription: Check, plan and adopt objects of ModelBox
  description: |
    Checks manifests of ModelBox, App, Genericdaemon, UnitedDeployment and Eru without
    a cluster, shows what the operator makes of them and what an apply would restart,
    and works with the objects in a cluster: status, history, undo, adopt.
  platforms:
END
for program in "$dist/modelbox-$VERSION"-*; do
  platform=${program##*/modelbox-"$VERSION"-}
  name=modelbox archive=$dist/kubectl-modelbox-$VERSION-${platform%.exe}.tar.gz
  [ "$platform" = "${platform%.exe}" ] || name=modelbox.exe
  files=$(mktemp -d)
  cp "$program" "$files/$name" && cp LICENSE "$files/"
  tar -c --sort=name --mtime="@$(git log -1 --format=%ct)" --owner=0 --group=0 --numeric-owner --mode=u=rwx,go=rx \
    -C "$files" LICENSE "$name" | gzip -n >"$archive"
  rm -r "$files"
  cat >>"$dist/modelbox.yaml" <<END
  - selector: {matchLabels: {os: ${platform%%-*}, arch: $(sed 's/.*-//;s/\.exe//' <<<"$platform")}}
    uri: $downloads/${archive##*/}
    sha256: $(sha256sum "$archive" | cut -d ' ' -f 1)
    bin: $name
END
done
