#!/usr/bin/env bash
# Shows and checks the main features, on a local control plane of its own: "make demo". It needs
# bin/local, bin/webhook and bin/controller. KEEP=1 leaves everything running until Ctrl-C, and the
# cluster after that. CLUSTER is the name of the cluster, and PICTURE a file that the demo is drawn into.
set -euo pipefail
cd "$(dirname "$0")/../.."
export CLUSTER=${CLUSTER:-modelbox-demo} LOCAL=1 CONTEXT='' ENABLE_WEBHOOKS=true WEBHOOK_ARGS=--sizes-file=config/sizes/sizes.yaml
export KUBECONFIG=$PWD/bin/kubeconfig-$CLUSTER
[ "$CLUSTER" != modelbox ] || KUBECONFIG=$PWD/bin/kubeconfig
log=bin/$CLUSTER.log operator='' within=90
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
  bold=$'\e[1m' green=$'\e[32m' red=$'\e[31m' plain=$'\e[0m'
else
  bold='' green='' red='' plain=''
fi

finish() {
  local code=$?
  trap '' INT TERM # Nothing interrupts the removal.
  trap - EXIT
  if [ "$code" != 0 ] && [ "$code" != 130 ] && [ -s "$log" ]; then
    printf '\nThe end of the log of the processes, %s:\n' "$log"
    tail -n 25 "$log"
  fi
  [ -z "$operator" ] || { kill "$operator" && wait "$operator"; } 2>/dev/null || true
  if [ "${KEEP:-0}" = 0 ]; then
    hack/local/cluster.sh down
  else
    echo "The cluster keeps running: CLUSTER=$CLUSTER make cluster-down removes it."
  fi
  exit "$code"
}
trap 'exit 130' INT TERM
trap finish EXIT

number=0
# step TITLE SECONDS begins a step, and says how long it usually takes.
step() {
  number=$((number + 1))
  printf '\n%s%d. %s%s (usually %d s)\n' "$bold" $number "$1" "$plain" "$2"
}
kubectl() { bin/kubectl -n default "$@"; }
indent() { fold -s -w 112 | sed 's/^/     /; s/ *$//'; }
# run prints a command of kubectl and its output; a manifest may be its standard input.
run() {
  printf '   $ kubectl'
  printf ' %s' "${@@Q}" | sed -E "s/'([A-Za-z0-9_.,:/=-]+)'/\1/g"
  printf '\n'
  kubectl "$@" 2>&1 | sed 's/^/     /'
}
ok() { printf '   %sok%s %s\n' "$green" "$plain" "$*"; }
fail() {
  printf '   %sfailed%s %s\n' "$red" "$plain" "$*"
  exit 1
}
# await WHAT COMMAND... waits until a command succeeds.
await() {
  local end=$((SECONDS + within))
  until kill -0 "$operator" 2>/dev/null && "${@:2}" >/dev/null 2>&1; do
    kill -0 "$operator" 2>/dev/null || fail "the operator has ended"
    [ $SECONDS -lt $end ] || fail "waiting for $1: $within s are over"
    sleep 0.2
  done
}
field() { kubectl get "$1" -o "jsonpath=$2"; }
has() { [ "$(field "$1" "$2")" = "$3" ]; }
ready='{.status.conditions[?(@.type=="Ready")]'
# reason OBJECT REASON waits until the condition Ready of an object has a reason, and prints it.
reason() {
  await "$1 to have the reason $2" has "$1" "$ready.reason}" "$2"
  echo "$1: Ready=$(field "$1" "$ready.status}") $2: $(field "$1" "$ready.message}")" | indent
}
# refused WHAT WANT... creates the object of the standard input, which must be refused with all of
# these words.
refused() {
  local output manifest
  manifest=$(cat)
  echo "   $1"
  if output=$(kubectl create -f - ${as:-} <<<"$manifest" 2>&1); then fail "it was accepted: $output"; fi
  printf '     %srefused%s\n' "$red" "$plain"
  sed -E 's/.*denied the request: |.*denied request: |^Error from server \(Invalid\): //; s/is invalid: \[/is invalid:\n- /; s/, spec\./,\n- spec./g' <<<"$output" | indent
  for want in "${@:2}"; do
    [[ $output == *"$want"* ]] || fail "the error does not contain \"$want\""
  done
}
object() { printf '{apiVersion: %s, kind: %s, metadata: {name: %s}, spec: %s}\n' "$@"; }
box() { object model.github.com/v1 ModelBox "$@"; }
available() {
  await "modelbox-sample to have $1 available replicas" \
    has mb/modelbox-sample "{.spec.replicas} {.status.availableReplicas} $ready.reason}" "$1 $1 Ready"
  run get mb modelbox-sample
}

rm -f "$log"
hack/local/cluster.sh down
hack/local/cluster.sh up
bin/local >"$log" 2>&1 &
operator=$!
await "the operator" grep -q 'The operator is running' "$log"

step "An Eru is created for an annotated Deployment, to restart it at the next minute (step 10 checks that)" 1
run apply -f - <<'END'
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {mtsre.meitu.com/eru: "true"}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:1.27"}]}
END
await "the Eru" has eru/web '{.status.phase}' Stopped
run get eru
run patch eru web --type=merge -p '{"spec":{"enabled":true,"schedule":"* * * * *"}}'

step "A ModelBox: the user's spec, and with a + what admission sets" 1
sample=config/samples/model_v1_modelbox.yaml
run apply -f $sample
spec() { sed -n '/^spec:/,/^[a-rt-z]/p' | sed '/^[a-rt-z]/d; /^status:/,$d'; }
diff -U 99 <(kubectl create --dry-run=client -o yaml -f $sample | spec) <(kubectl get mb modelbox-sample -o yaml | spec) |
  sed -E '1,3d; s/^([ +-])/\1 /' | tee "bin/$CLUSTER.spec" | sed 's/^/     /' || true
! grep -q '^-' "bin/$CLUSTER.spec" && grep -q '^+ .*resourceType: small' "bin/$CLUSTER.spec" || fail "admission changed the user's values"
ok "admission set the size, the Service type and the probes, and did not change the user's values"

step "Invalid objects are refused before they are stored, with the field and what to do" 2
box bad '{image: "a:1", resourceType: small, resources: {limits: {cpu: 3}}}' |
  refused "a preset together with other resources" "set resourceType: custom"
box bad '{image: "a:1", serviceType: ClusterIP, ports: [{port: 80, nodePort: 30080}]}' |
  refused "a nodePort in a Service without node ports" "spec.ports[0].nodePort"
box bad '{image: "a:1", podTemplate: {spec: {nodeSelektor: {a: b}}}}' |
  refused "a field of podTemplate that a Pod does not have" "nodeSelektor"
box bad '{image: "A B", replicas: -1, rollingUpdate: 0, ports: [{port: 80, targetPort: unknown}]}' |
  refused "several invalid fields, in one error" spec.image spec.replicas spec.rollingUpdate "spec.ports[0].targetPort"
object app.huolala.cn/v1 App bad '{image: "a:1", envs: [{name: "A=B"}]}' |
  refused "an App with an invalid name of an environment variable" "spec.envs[0].name"
object mydomain.com/v1beta1 Genericdaemon bad '{image: "a:1", label: "-logs"}' |
  refused "a Genericdaemon with an invalid label" spec.label
object extension.k8s.io/v1 UnitedDeployment bad '{deploymentName: My_Web, replicas: 1}' |
  refused "a UnitedDeployment with an invalid name of a Deployment" spec.deploymentName
object mtsre.meitu.com/v1 Eru bad '{schedule: "0 0 30 2 *"}' |
  refused "an Eru whose schedule matches no date" spec.schedule

step "A user may make through a ModelBox only what the user may make without it" 2
run create role writes-modelboxes --verb='*' --resource=modelboxes.model.github.com
run create rolebinding alice --role=writes-modelboxes --user=alice
await "alice's permissions" kubectl auth can-i create modelboxes.model.github.com --as=alice
box alices '{image: "nginx:1.27"}' | as=--as=alice refused "alice may write ModelBoxes, and no Deployments" \
  "alice may not create deployments.apps in namespace default, which this ModelBox makes"
run create rolebinding alice-edits --clusterrole=edit --user=alice
await "alice's permissions" kubectl auth can-i create deployments.apps --as=alice
box alices '{image: "nginx:1.27"}' | run create --dry-run=server --as=alice -f -

step "The rollout, and scaling the ModelBox itself" 15
available 4
run scale mb/modelbox-sample --replicas=3
available 3
echo "   a HorizontalPodAutoscaler with minReplicas 5 scales the ModelBox itself"
object autoscaling/v2 HorizontalPodAutoscaler sample \
  '{minReplicas: 5, maxReplicas: 9, scaleTargetRef: {apiVersion: model.github.com/v1, kind: ModelBox, name: modelbox-sample}}' | kubectl apply -f - >/dev/null
available 5

step "Objects of other owners are never changed; changes of the operator's objects are reverted" 5
run create service clusterip taken --tcp=1
version=$(field service/taken '{.metadata.resourceVersion}')
box taken '{image: "nginx:1.27", ports: [{port: 80}]}' | run create -f -
reason mb/taken NameConflict
has service/taken '{.metadata.resourceVersion}' "$version" || fail "the Service was changed"
ok "the Service still has the resourceVersion $version"
run delete service taken
reason mb/taken Ready
run set image deployment/modelbox-sample nginx=example.com/other:1
await "the image to be reverted" has deployment/modelbox-sample '{.spec.template.spec.containers[0].image}' nginx:1.7.9
ok "the image is nginx:1.7.9 again"

step "An App; a Genericdaemon that follows a label from node to node; a ModelBox with a model" 8
run apply -f config/samples/app_v1_app.yaml -f config/samples/mydomain_v1beta1_genericdaemon.yaml
reason happ/nginx-app Ready
reason gd/syslog NoMatchingNodes
for node in node-1 node-2; do
  [ $node = node-1 ] || run label node node-1 logs-
  run label node $node logs=here
  await "the daemon on $node" has pods '{.items[?(@.metadata.labels.app\.kubernetes\.io/instance=="syslog")].spec.nodeName}' $node
  await "the status of the daemon" has gd/syslog '{.status.installed}' 1
  ok "the daemon runs on $node, and on no other node"
done
box tiny "{image: 'nginx:1.27', model: {uri: 'https://models.example.com/tiny.tar.gz', sha256: '$(printf '%064d' 1)'}}" | run apply -f -
await "the Deployment" has deployment/tiny '{.spec.template.spec.initContainers[0].name}' fetch-model
field deployment/tiny 'an init container fetches and verifies the model: {.spec.template.spec.initContainers[0].args}' | indent
echo

step "A ModelBox of a size that the platform defines: its server, resources and probes" 5
box qwen '{resourceType: llama-cpp, model: {uri: "hf://Qwen/Qwen2.5-0.5B-Instruct-GGUF@9217f5db79a29953eb74d5343926648285ec7e67/qwen2.5-0.5b-instruct-q4_0.gguf"}}' | run apply -f -
reason mb/qwen Ready
field mb/qwen 'admission set the image {.spec.image} and the arguments {.spec.args}' | indent
echo
box bad '{resourceType: huge, image: "a:1"}' | refused "a size that the cluster does not have" llama-cpp

step "A UnitedDeployment keeps the replicas of a Deployment" 5
run apply -f config/samples/extension_v1_uniteddeployment.yaml
reason xud/example-united-deployment Ready
run scale deployment/example-deployment --replicas=7
await "2 replicas" has deployment/example-deployment '{.spec.replicas} {.status.replicas}' "2 2"
ok "deployment/example-deployment has 2 replicas again"
run delete deployment example-deployment
reason xud/example-united-deployment TargetNotFound
run apply -f config/samples/extension_v1_uniteddeployment.yaml
reason xud/example-united-deployment Ready

step "The Eru has restarted its Deployment at its scheduled time" 30
run apply -f config/samples/mtsre_v1_eru.yaml
reason eru/opsnatmonitor-v1 Disabled
restarts() { field eru/web '{.status.history[?(@.result=="Restarted")].slot}' | grep .; }
await "a restart at the scheduled time" restarts
run get eru web
at=$(field deployment/web '{.spec.template.metadata.annotations.kubectl\.kubernetes\.io/restartedAt}')
[[ $at == *:00Z ]] || fail "deployment/web was restarted at $at"
ok "deployment/web was restarted for the scheduled time $at"
run patch eru web --type=merge -p '{"spec":{"enabled":false}}'

step "All objects are Ready, and an idle controller sends no requests" 8
kubectl wait --for=condition=Ready --timeout=60s modelbox,happ,gd,xud --all >/dev/null
run get mbo
audit=${XDG_CACHE_HOME:-$HOME/.cache}/modelbox-operator/kwok/clusters/$CLUSTER/logs/audit.log
requests() { grep -E '"userAgent":"(modelbox-)?controller/' "$audit" | grep -v '"verb":"watch"' | grep -vc '"resource":"leases"'; }
requests >/dev/null || fail "the audit log has no request of the controller"
idle() {
  local before
  before=$(requests)
  sleep 5
  [ "$(requests)" = "$before" ]
}
await "the controller to send no requests" idle
ok "for 5 s the controller sent no requests to the API server except for its lease and its watches"

# PICTURE is a file for what README shows of this cluster: "make picture".
if [ -n "${PICTURE:-}" ]; then
  folder=$(mktemp -d)
  box bad '{image: "A B", rollingUpdate: 0, ports: [{port: 80, targetPort: http}]}' >"$folder/bad.yaml"
  sed 's/nginx:1.7.9/nginx:1.27/; s/replicas: 4/replicas: 5/' $sample >"$folder/modelbox.yaml"
  for command in "kubectl get mb" "kubectl apply -f bad.yaml" "modelbox plan -f modelbox.yaml"; do
    echo "$ $command"
    (cd "$folder" && PATH=$OLDPWD/bin:$PATH && env $command 2>&1 || true) | fold -s -w 118 | sed 's/ *$//'
    echo
  done | go run ./hack/picture "What a user sees" >"$PICTURE"
  rm -r "$folder"
fi

printf '\nEverything was as expected, after %d s.\n' $SECONDS
if [ "${KEEP:-0}" != 0 ]; then
  echo "The operator keeps running until Ctrl-C: bin/kubectl --kubeconfig ${KUBECONFIG#"$PWD/"} get mbo"
  wait "$operator"
fi
