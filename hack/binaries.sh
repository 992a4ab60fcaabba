#!/usr/bin/env bash
# Prints the directory of the local control plane's programs, which the demo, "make run" and the
# tests use: hack/binaries.sh [VERSION]
# Missing ones are downloaded from the sites that publish them, and verified with the checksums
# there; where the sites cannot be reached, they are built from the modules that hack/tools/kube
# pins, and verified with go.sum. They are kept in the user's cache directory, by version, for all
# clones. MODELBOX_BINARIES is a directory that already has all of them.
# VERSION, such as v1.30.14, is a release of Kubernetes whose servers are in the directory instead of
# today's. hack/tools/kube/versions has the SHA-256 sum of what these are built from.
set -euo pipefail
kube=$(cd "$(dirname "$0")/tools/kube" && pwd)
programs=(etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok kwokctl)
servers=(kube-apiserver kube-controller-manager kube-scheduler)
version() { awk -v module="$1" '$1 == module && $2 ~ /^v/ {print $2}' "$kube/go.mod"; }
current=$(version k8s.io/kubernetes) etcd=$(version go.etcd.io/etcd/server/v3)
kubernetes=${1:-$current} && kubernetes=v${kubernetes#v}
# The other programs are today's.
[ "$kubernetes" = "$current" ] || { today=$("$0") && programs=("${servers[@]}"); }
cd "$kube"
say() { printf '%s\n' "$*" >&2; }
complete() {
  for program in "${programs[@]}"; do [ -x "$1/$program" ] || return 1; done
}

if [ -n "${MODELBOX_BINARIES:-}" ] && [ "$kubernetes" = "$current" ]; then
  complete "$MODELBOX_BINARIES" || { say "MODELBOX_BINARIES is $MODELBOX_BINARIES, which must have ${programs[*]}" && exit 1; }
  (cd "$OLDPWD" && cd "$MODELBOX_BINARIES" && pwd)
  exit
fi

IFS=. read -r major minor _ <<<"${kubernetes#v}"
# The linker sets the version, which is not in the sources of Kubernetes. The other flags are those of
# the product and of its tests, so that all of them use the same compiled packages.
export CGO_ENABLED=0 GOWORK=off GOGC=400
flags=(-trimpath -buildvcs=false -ldflags "-s -w $(printf -- '-X k8s.io/component-base/version.git%s ' "Version=$kubernetes" "Major=$major" "Minor=$minor" TreeState=clean)")

goos=$(go env GOOS) goarch=$(go env GOARCH)
case $goos in
darwin) cache=$HOME/Library/Caches ;;
*) cache=${XDG_CACHE_HOME:-$HOME/.cache} ;;
esac
pins() { if [ -z "${today:-}" ]; then cat go.mod go.sum; else grep "^$kubernetes " versions || true; fi; }
key=$({ pins && printf '%s ' "${flags[@]}"; } | git hash-object --stdin | cut -c 1-12)
dir=$cache/modelbox-operator/$kubernetes-$goos-$goarch-$key
finish() {
  [ -z "${today:-}" ] || ln -sf "$today"/{etcd,kubectl,kwok,kwokctl} "$dir/"
  echo "$dir"
  exit
}
if complete "$dir"; then finish; fi

mkdir -p "$dir"
if command -v flock >/dev/null; then
  exec 9>"$dir.lock"
  flock -n 9 || { say "waiting for another command that provides the control plane's programs" && flock 9; }
fi
# A program is complete when it is in the directory, because it is moved there.
made=$(mktemp -d "$dir.XXXXXX")
trap 'rm -rf "$made"; kill $(jobs -p) 2>/dev/null || true' EXIT
get() { curl -fsSL --connect-timeout 5 --speed-time 15 --speed-limit 1000 "$@"; }
sha256() { (sha256sum "$1" 2>/dev/null || shasum -a 256 "$1") | cut -d ' ' -f 1; }
# verified FILE SUM: whether the file has the SHA-256 sum.
verified() { [ "$(sha256 "$1")" = "$2" ]; }

# download PROGRAM fails if it is not published for this platform: Kubernetes and etcd publish their
# servers for Linux, and kwok publishes no checksums.
download() {
  local base=https://dl.k8s.io/release/$kubernetes/bin/$goos/$goarch/$1 archive=etcd-$etcd-$goos-$goarch
  case $goos/$1 in
  linux/kube-* | */kubectl)
    get -o "$made/$1" "$base" && verified "$made/$1" "$(get "$base.sha256")"
    ;;
  linux/etcd)
    base=https://github.com/etcd-io/etcd/releases/download/$etcd
    get -o "$made/$archive.tar.gz" "$base/$archive.tar.gz" &&
      verified "$made/$archive.tar.gz" "$(get "$base/SHA256SUMS" | awk -v f="$archive.tar.gz" '$2 == f {print $1}')" &&
      tar -xzf "$made/$archive.tar.gz" -C "$made" --strip-components 1 "$archive/etcd"
    ;;
  *) return 1 ;;
  esac
}

package() {
  case $1 in
  etcd) echo go.etcd.io/etcd/server/v3 ;;
  kwok*) echo "sigs.k8s.io/kwok/cmd/$1" ;;
  *) echo "k8s.io/kubernetes/cmd/$1" ;;
  esac
}

# build PROGRAM... compiles programs, and prints how far it is: -v prints each package.
build() {
  local packages=() of=$1
  [ $# -eq 1 ] || of+=" and others"
  for program in "$@"; do packages+=("$(package "$program")"); done
  go build -v "${flags[@]}" -o "$made/" "${packages[@]}" 2>&1 | tee "$made/log" |
    awk -v of="$of" '!/^go: / && ++n % 250 == 0 {print "  " n " packages of " of " compiled"; fflush()}' >&2 || {
    tail -n 20 "$made/log" >&2
    say "building $* failed; if modules could not be fetched, check \"go env GOPROXY\", or set MODELBOX_BINARIES"
    return 1
  }
}

# enter_release makes the sources of another release the main module, so that it has the settings that
# it was released with. Its go.mod replaces the modules of its folder "staging", at v0.0.0, by folders
# that are no part of the module. Here they are what was published of them; no program needs the samples.
enter_release() {
  local release staging=v0.$minor.${kubernetes##*.} pin
  release=$(cd "$made" && go mod download -json "k8s.io/kubernetes@$kubernetes")
  field() { sed -nE "s/^\t\"$1\": \"(.*)\",?$/\1/p" <<<"$release"; }
  cd "$(field Dir)"
  sed -E "/k8s.io\/sample-|=> \.\/staging/d; s/ v0\.0\.0( |$)/ $staging\1/" go.mod >"$made/go.mod"
  cat go.sum >"$made/go.sum"
  flags+=(-mod=readonly -modfile "$made/go.mod")
  go mod download -modfile "$made/go.mod" $(awk -v version="$staging" '$2 == version {print $1}' "$made/go.mod")
  { field Sum && cat "$made/go.sum"; } >"$made/sums"
  pin="$kubernetes $(sha256 "$made/sums")"
  grep -qxF "$pin" "$kube/versions" || { say "hack/tools/kube/versions does not have the line \"$pin\"" && return 1; }
}

missing=()
reachable=$(command -v curl >/dev/null && get --max-time 10 "https://dl.k8s.io/release/$kubernetes/bin/linux/amd64/kubectl.sha256" 2>/dev/null || true)
for program in "${programs[@]}"; do
  [ ! -x "$dir/$program" ] || continue
  if [ -n "$reachable" ] && download "$program"; then
    say "downloaded $program"
    chmod 755 "$made/$program"
    mv "$made/$program" "$dir/"
  else
    missing+=("$program")
  fi
done

if [ ${#missing[@]} -gt 0 ]; then
  say "building ${missing[*]} of Kubernetes $kubernetes (once; usually 6 to 12 minutes on two cores, for about 2,000 packages)"
  if [ -n "${today:-}" ]; then
    enter_release
  else # The modules that follow are fetched while the first program, whose modules are few, is compiled.
    { go mod download && cd ../../.. && go mod download; } >/dev/null 2>&1 &
  fi
  build "${missing[0]}"
  [ ${#missing[@]} -eq 1 ] || build "${missing[@]:1}"
  [ ! -e "$made/server" ] || mv "$made/server" "$made/etcd"
  for program in "${missing[@]}"; do mv "$made/$program" "$dir/"; done
fi
finish
