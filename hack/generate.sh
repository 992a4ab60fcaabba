#!/usr/bin/env bash
# Writes everything that is generated: deepcopy, CRDs, RBAC, webhook manifests,
# and the clients under api/client. Run it by "make generate".
set -euo pipefail
cd "$(dirname "$0")/.."

module=$(go list -m)
boilerplate=hack/boilerplate.go.txt
groups=(model/v1 app/v1 mydomain/v1beta1 extension/v1 mtsre/v1)
inputs=("${groups[@]/#/$module/api/}")
client=$module/api/client

echo "generate: deepcopy, CRDs, RBAC and webhook manifests"
go tool controller-gen object:headerFile=$boilerplate paths=./api/...
rm -rf config/crd/bases
go tool controller-gen crd:maxDescLen=1000 paths=./api/... output:crd:dir=config/crd/bases
if [ -d controller ]; then
  go tool controller-gen rbac:roleName=modelbox-controller paths=./controller/... output:rbac:dir=config/controller/generated
fi
if [ -d webhook ]; then
  go tool controller-gen webhook rbac:roleName=modelbox-webhook paths=./webhook/... \
    output:webhook:dir=config/webhook/generated output:rbac:dir=config/webhook/generated
fi

echo "generate: the names of the time zones"
go generate ./cron

echo "generate: clientset, listers, informers and applyconfigurations"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# The old clients stay until the new ones are whole, because the API packages of
# a checkout without them would not be loadable together with their users.
out=$tmp/client
mkdir -p "$out"
go tool applyconfiguration-gen --go-header-file $boilerplate \
  --output-dir "$out/applyconfigurations" --output-pkg "$client/applyconfigurations" "${inputs[@]}"
rm -rf api/client/applyconfigurations
mkdir -p api/client
cp -R "$out/applyconfigurations" api/client/
go tool client-gen --go-header-file $boilerplate --clientset-name versioned \
  --input-base "$module/api" $(printf -- '--input %s ' "${groups[@]}") \
  --apply-configuration-package "$client/applyconfigurations" \
  --output-dir "$out/clientset" --output-pkg "$client/clientset"
go tool lister-gen --go-header-file $boilerplate \
  --output-dir "$out/listers" --output-pkg "$client/listers" "${inputs[@]}"
go tool informer-gen --go-header-file $boilerplate \
  --versioned-clientset-package "$client/clientset/versioned" --listers-package "$client/listers" \
  --output-dir "$out/informers" --output-pkg "$client/informers" "${inputs[@]}"
for part in clientset listers informers; do
  rm -rf "api/client/$part"
  cp -R "$out/$part" api/client/
done
gofmt -s -w api/client
