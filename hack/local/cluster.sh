#!/usr/bin/env bash
# Starts or removes a local control plane with four simulated nodes, by kwokctl:
#   hack/local/cluster.sh up|down
# CLUSTER is its name, by default modelbox. Its kubeconfig is bin/kubeconfig, or bin/kubeconfig-NAME
# for another name.
set -euo pipefail
cd "$(dirname "$0")/../.."
name=${CLUSTER:-modelbox}
say() { printf '%s\n' "$*" >&2; }
[[ $name =~ ^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$ ]] ||
  { say "CLUSTER is \"$name\": use up to 40 characters of a-z, 0-9 and dashes, with no dash at the start or the end" && exit 1; }
kubeconfig=bin/kubeconfig
[ "$name" = modelbox ] || kubeconfig=bin/kubeconfig-$name
unset "${!KWOK_@}" # Its settings would change the cluster.
export KWOK_WORKDIR=${XDG_CACHE_HOME:-$HOME/.cache}/modelbox-operator/kwok
home=$KWOK_WORKDIR/clusters/$name

kwokctl() {
  PATH=$programs:$PATH "$programs/kwokctl" --name "$name" "$@" >"$home.log" 2>&1 ||
    { tail -n 20 "$home.log" >&2 && say "kwokctl $1 $2 failed" && return 1; }
}
# forget removes the pid files of processes that have ended, and fails if there is none. kwokctl would
# signal another process that has the pid now, and would not start a component again.
forget() {
  local file forgotten=1
  for file in "$home"/pids/*.pid; do
    [ ! -e "$file" ] || ps -o args= -p "$(cat "$file")" | grep -qF "$home/bin/" || { rm -f "$file" && forgotten=0; }
  done
  return $forgotten
}
delete() {
  [ -d "$home" ] || return 0
  forget || true
  [ ! -e "$home/kwok.yaml" ] || kwokctl delete cluster --kubeconfig "$home/kubeconfig.yaml" || true
  for file in "$home"/pids/*.pid; do # What kwokctl did not start completely.
    [ ! -e "$file" ] || kill "$(cat "$file")" || true
  done
  rm -rf "$home" "$home.log"
}
# settle waits until pods can be created: the API server is ready, kwok has made the nodes Ready, and
# the default service account exists, without which no pod is admitted. On a slow machine
# kube-controller-manager ends before the API server is ready, and kwokctl does not start it again.
settle() {
  local k=("$programs/kubectl" --kubeconfig "$home/kubeconfig.yaml" --request-timeout 5s) end=$((SECONDS + 120))
  until "${k[@]}" apply --server-side -f hack/local/nodes.yaml &&
    [ "$("${k[@]}" get nodes -o 'jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{end}')" = TrueTrueTrueTrue ] &&
    "${k[@]}" -n default get serviceaccount default; do
    [ $SECONDS -lt $end ] || return 1
    if forget; then kwokctl start cluster || return 1; fi
    sleep 0.3
  done >/dev/null 2>&1
}

create() {
  local config
  config=$(mktemp -d)
  sed "s|PROGRAMS|$programs|; s|AUDIT_POLICY|$PWD/hack/local/audit.yaml|" hack/local/kwokctl.yaml >"$config/kwokctl.yaml"
  # An empty kubeconfig keeps kwokctl from writing to ~/.kube/config.
  kwokctl create cluster --config "$config/kwokctl.yaml" --kubeconfig "" || { rm -rf "$config" && return 1; }
  rm -rf "$config"
}

up() {
  programs=$(./hack/binaries.sh)
  mkdir -p bin "$KWOK_WORKDIR/clusters"
  if [ ! -e "$home/kubeconfig.yaml" ]; then
    say "starting cluster $name (usually 10 seconds)"
    trap delete EXIT
    delete
    create
    settle || { say "cluster $name is not ready: the logs of its processes:" && tail -n 5 "$home"/logs/*.log >&2 && exit 1; }
    trap - EXIT
  elif ! "$programs/kubectl" --kubeconfig "$home/kubeconfig.yaml" --request-timeout 5s get --raw /readyz >/dev/null 2>&1; then
    say "starting cluster $name again"
    forget || true
    kwokctl start cluster
    settle || { say "cluster $name is not ready: make cluster-down removes it" && exit 1; }
  fi
  ln -sf "$programs/kubectl" bin/kubectl
  (umask 077 && KUBECONFIG=$home/kubeconfig.yaml bin/kubectl config view --raw --flatten --minify >"$kubeconfig")
}

case ${1:-} in
up)
  up
  say "cluster $name runs: bin/kubectl --kubeconfig $kubeconfig get nodes"
  ;;
down)
  if [ -d "$home" ]; then
    programs=$(./hack/binaries.sh)
    delete
    say "removed cluster $name"
  fi
  rm -f "$kubeconfig"
  ;;
*) say "usage: hack/local/cluster.sh up|down" && exit 2 ;;
esac
