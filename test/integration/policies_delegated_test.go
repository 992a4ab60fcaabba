// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// lists are the annotations of a Namespace that allows one object of each type.
var lists = map[string]string{
	virtualGroup + "/secrets":          "db, tls ,pull",
	virtualGroup + "/config-maps":      "settings",
	virtualGroup + "/service-accounts": "server",
	virtualGroup + "/claims":           "models",
	virtualGroup + "/deployments":      "web, api",
}

const (
	sha256    = "sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	fromHTTPS = "uri: https://models.example.com/bert.tar.zst, " + sha256
)

// Specs of a ModelBox: with fields, with a pod, with a container, with a model, with modelFileURL,
// with a model and a pod, and with fields of the container that fetches.
func box(text string) string       { return `{image: "a:1", ` + text + `}` }
func pod(text string) string       { return box(`podTemplate: {spec: ` + text + `}`) }
func container(text string) string { return pod(`{containers: [{name: a, ` + text + `}]}`) }
func model(text string) string     { return box(`model: {` + text + `}`) }
func several(text string) string   { return box(`models: [{` + text + `}]`) }
func alias(uri string) string      { return box(`modelFileURL: "` + uri + `"`) }
func modelWith(pod string) string {
	return box(`model: {uri: https://a/b}, podTemplate: {spec: ` + pod + `}`)
}
func fetcher(text string) string {
	return modelWith(`{initContainers: [{name: fetch-model, ` + text + `}]}`)
}

// honest are specs that a delegated user is likely to need.
var honest = []string{
	`{image: "server:1", imagePullPolicy: IfNotPresent, imagePullSecrets: [{name: pull}], command: [serve], args: [--port=80],
resources: {limits: {memory: 8Gi, nvidia.com/gpu: "1"}}, sharedMemory: 2Gi, strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}},
progressDeadlineSeconds: 3600, terminationGracePeriodSeconds: 60, ports: [{port: 80}], serviceType: ClusterIP,
envs: [{name: A, value: b}, {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}, {name: PW, valueFrom: {secretKeyRef: {name: db, key: pw}}},
  {name: C, valueFrom: {configMapKeyRef: {name: settings, key: c}}}],
envFrom: [{prefix: X_, secretRef: {name: db}}, {configMapRef: {name: settings}}], readinessProbe: {httpGet: {path: /, port: 80}},
podTemplate: {metadata: {creationTimestamp: null}, spec: {
  hostNetwork: false, serviceAccountName: server, automountServiceAccountToken: false, nodeSelector: {gpu: "true"},
  affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: kubernetes.io/hostname}}]}},
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}],
  securityContext: {runAsNonRoot: true, runAsUser: 1000, fsGroup: 1000, seccompProfile: {type: RuntimeDefault}},
  initContainers: [{name: fetch, image: "fetch:1", restartPolicy: Always, command: [fetch], env: [{name: T, valueFrom: {secretKeyRef: {name: db, key: t}}}],
    volumeMounts: [{name: cache, mountPath: /cache}]}],
  containers: [{name: box, volumeMounts: [{name: cache, mountPath: /cache}], lifecycle: {preStop: {exec: {command: [sleep, "1"]}}},
    securityContext: {allowPrivilegeEscalation: false, privileged: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}}},
    {name: sidecar, image: "s:1", ports: [{containerPort: 81}], livenessProbe: {tcpSocket: {port: 81}}}],
  volumes: [{name: cache, emptyDir: {sizeLimit: 1Gi}}, {name: tls, secret: {secretName: tls}}, {name: settings, configMap: {name: settings}},
    {name: models, persistentVolumeClaim: {claimName: models, readOnly: true}}, {name: weights, image: {reference: "weights:1"}},
    {name: all, projected: {sources: [{secret: {name: db}}, {configMap: {name: settings}}, {downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}]}},
    {name: info, downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}]}}}`,
	`App {image: "a:1", ports: [{port: 80}], podTemplate: {spec: {containers: [{name: sidecar, image: "s:1"}]}}}`,
	`App {image: "a:1", name: main}`,
	`App {image: "a:1", imagePullPolicy: Always, imagePullSecrets: [{name: pull}, {name: db}], command: [a], args: [b],
  envFrom: [{secretRef: {name: db}}, {configMapRef: {name: settings}}], progressDeadlineSeconds: 60}`,
	pod(`{imagePullSecrets: [{name: pull}], terminationGracePeriodSeconds: 60}`), pod(`{serviceAccountName: default, serviceAccount: default}`),
	`Genericdaemon {image: "a:1", label: logs, podTemplate: {spec: {volumes: [{name: v}]}}}`,
	`UnitedDeployment {deploymentName: api, replicas: 3}`, `Eru {deploymentName: web, enabled: true}`, `Eru {deploymentname: web, enabled: true}`,
	box(`minReadySeconds: 10, revisionHistoryLimit: 2, ports: [{port: 80}],
  service: {internalTrafficPolicy: Local, publishNotReadyAddresses: true, sessionAffinity: ClientIP, trafficDistribution: PreferSameZone}`),
	box(`autoscaling: {minReplicas: 1, maxReplicas: 2, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}},
  {type: ContainerResource, containerResource: {name: memory, container: a, target: {type: AverageValue, averageValue: 1Gi}}},
  {type: Pods, pods: {metric: {name: requests}, target: {type: AverageValue, averageValue: 1}}}]}`),
	`Genericdaemon {image: "a:1", command: [a], args: [b], imagePullPolicy: Always, imagePullSecrets: [{name: pull}],
  envFrom: [{secretRef: {name: db}}], terminationGracePeriodSeconds: 60}`,
	box(`podTemplate: {}`), pod(`{}`), box(`serviceType: "", ports: [{port: 80, nodePort: 0}]`), box(`envs: [{name: A}]`),
	model(fromHTTPS), model(fromHTTPS + `, mountPath: /m, sizeLimit: 1Gi, credentials: {name: db}, claim: models`),
	model(`uri: "http://10.0.0.1/a", ` + sha256), model(`uri: s3://bucket/key, credentials: {name: tls}`),
	model(`uri: hf://org/name@0123456789012345678901234567890123456789`),
	model(`uri: "oci://r.io/a@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"`),
	model(`uri: pvc://models`), model(`uri: pvc://models/a/b`), alias("https://models.example.com/bert.tar.zst"), alias("pvc://models/a"), alias(""),
	box(`model: {uri: pvc://models/a}, modelFileURL: pvc://models/a`), box(`model: {mountPath: /m, uri: ""}, modelFileURL: pvc://models/a`),
	model(`uri: https://a/b, sha256: "", claim: ""`), model(`uri: "hf://org/name@0123456789012345678901234567890123456789", include: ["*.json"], exclude: [onnx/], claim: models`),
	several(`name: a, ` + fromHTTPS + `, sizeLimit: 1Gi, credentials: {name: db}, claim: models}, {name: b, uri: pvc://models/a, mountPath: /b, credentials: null`),
	// The API server removes null before the policy reads the object.
	box(`model: null, modelFileURL: null`), model(`uri: https://a/b, sha256: null, mountPath: null, sizeLimit: null, credentials: null, claim: null`),
	modelWith(`{initContainers: [{name: fetch-model, env: [{name: HTTPS_PROXY, value: "http://proxy:3128"}, {name: T, valueFrom: {secretKeyRef: {name: db, key: t}}}],
  resources: {limits: {memory: 1Gi}}, securityContext: {runAsUser: 1000}, volumeMounts: [{name: ca, mountPath: /etc/ssl}]}], volumes: [{name: ca, configMap: {name: settings}}]}`),
}

func TestDelegatedUsersMayUseWhatIsListed(t *testing.T) {
	t.Parallel()
	c := user(t, "honest", lists, kindsRole, delegatedRole)
	for _, text := range honest {
		check(t, c, text, allowed, "")
	}
}

const (
	badService = "spec.serviceType must be ClusterIP, and spec.ports[*].nodePort"
	noSecret   = "/secrets of the Namespace may be used (not so: "
	noMap      = "/config-maps of the Namespace may be used (not so: "
	noAccount  = "/service-accounts of the Namespace may be used (not so: "
	noClaim    = "/claims of the Namespace may be used (not so: "
	aContext   = "securityContext of container a"
	noNull     = "spec.podTemplate may have no null"
	ofAlias    = noClaim + "spec.modelFileURL)"
	ofModel    = noSecret + "spec.model.credentials)"
)

// refusals are specs of a ModelBox, by a part of the error. An error names all fields, containers
// and volumes that it is about.
var refusals = map[string][]string{
	badService: {
		box(`serviceType: LoadBalancer, ports: [{port: 80}]`), box(`serviceType: NodePort, ports: [{port: 80}]`),
		box(`ports: [{port: 80, nodePort: 30080}]`),
	},
	"the fields selector": {box(`selector: {app: theirs}`), `App {image: "a:1", selector: {app: theirs}}`},
	"the fields scheduling": {
		box(`scheduling: {tolerations: [{operator: Exists}]}`), box(`scheduling: {priorityClassName: system-node-critical}`), box(`scheduling: {}`),
		`App {image: "a:1", scheduling: {runtimeClassName: another}}`,
	},
	"the fields podMetadata": {
		box(`podMetadata: {labels: {app: theirs}}`), `App {image: "a:1", podMetadata: {annotations: {"k8s.v1.cni.cncf.io/networks": "host"}}}`,
	},
	"the fields serviceMetadata":    {box(`serviceMetadata: {annotations: {"external-dns.alpha.kubernetes.io/hostname": a.example.com}}`)},
	"the fields deploymentMetadata": {box(`deploymentMetadata: {annotations: {"mtsre.meitu.com/eru": "true"}}`)},
	"the fields spec.service.loadBalancerClass may not": {
		box(`service: {loadBalancerClass: example.com/a}`), `App {image: "a:1", service: {loadBalancerClass: example.com/a}}`,
	},
	"the fields spec.service.loadBalancerSourceRanges may not": {box(`service: {loadBalancerSourceRanges: [10.0.0.0/8]}`)},
	"the fields spec.service.externalTrafficPolicy may not":    {box(`service: {externalTrafficPolicy: Local}`)},
	"the fields spec.autoscaling.metrics (external), spec.autoscaling.metrics (object) may not": {
		box(`autoscaling: {maxReplicas: 2, metrics: [{type: External, external: {metric: {name: a}, target: {type: Value, value: 1}}},
  {type: Object, object: {describedObject: {kind: Service, name: theirs}, metric: {name: a}, target: {type: Value, value: 1}}}]}`),
	},
	"metadata.labels":      {box(`podTemplate: {metadata: {labels: {app: another}}}`)},
	"metadata.annotations": {box(`podTemplate: {metadata: {annotations: {"k8s.v1.cni.cncf.io/networks": "host"}}}`)},
	"the fields another":   {box(`podTemplate: {another: 1}`)},
	"the fields $patch":    {pod(`{$patch: replace}`)},
	noAccount + "admin)": {
		pod(`{serviceAccountName: admin}`), pod(`{serviceAccount: admin}`),
	},
	"automountServiceAccountToken may only be false": {pod(`{automountServiceAccountToken: true}`)},
	"securityContext of the pod": {
		pod(`{securityContext: {sysctls: [{name: a, value: b}]}}`), pod(`{securityContext: {runAsUser: 0}}`),
	},
	aContext: {
		container(`securityContext: {runAsNonRoot: false}`), container(`securityContext: {privileged: true}`),
		container(`securityContext: {allowPrivilegeEscalation: true}`), container(`securityContext: {capabilities: {add: [SYS_ADMIN]}}`),
		container(`securityContext: {seccompProfile: {type: Unconfined}}`), container(`securityContext: {nextField: 1}`),
	},
	"securityContext of container i": {pod(`{initContainers: [{name: i, securityContext: {privileged: true}}]}`)},
	"a (nextField)":                  {container(`nextField: 1`)},
	"a (volumeDevices)":              {container(`volumeDevices: [{name: a, devicePath: /dev/a}]`)},
	"hostPort and hostIP of the containers a": {
		container(`ports: [{containerPort: 80, hostPort: 80}]`), container(`ports: [{containerPort: 80, hostIP: 10.0.0.1}]`),
	},
	"lifecycle handlers (spec)": {
		box(`livenessProbe: {httpGet: {port: 80, host: 169.254.169.254}}`), box(`startupProbe: {tcpSocket: {port: 80, host: 169.254.169.254}}`),
	},
	"container a)": {container(`lifecycle: {preStop: {httpGet: {port: 80, host: 169.254.169.254}}}`)},
	"spec.podTemplate.spec.volumes: v": {
		pod(`{volumes: [{name: v, hostPath: {path: /}}]}`), pod(`{volumes: [{name: v, nfs: {server: s, path: /}}]}`),
		pod(`{volumes: [{name: v, csi: {driver: d}}]}`), pod(`{volumes: [{name: v, ephemeral: {}}]}`),
		pod(`{volumes: [{name: v, projected: {sources: [{podCertificate: {}}]}}]}`),
	},
	"no serviceAccountToken": {pod(`{volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]}`)},
	noNull: {
		pod(`{volumes: null}`), container(`env: null`), pod(`null`), pod(`{volumes: [{name: v, emptyDir: null}]}`), pod(`{securityContext: null}`),
	},
	noSecret + "spec)": {
		box(`envs: [{name: A, valueFrom: {secretKeyRef: {name: root, key: a}}}]`), box(`envFrom: [{secretRef: {name: root}}]`),
	},
	"(not so: spec.podTemplate, container a)": {container(`env: [{name: A, valueFrom: {secretKeyRef: {name: root, key: a}}}]`)},
	"(not so: volume v)": {
		pod(`{volumes: [{name: v, secret: {secretName: root}}]}`),
		pod(`{volumes: [{name: v, projected: {sources: [{secret: {name: db}}, {secret: {name: root}}]}}]}`),
		pod(`{volumes: [{name: v, secret: {}}]}`), pod(`{volumes: [{name: v, configMap: {name: another}}]}`),
	},
	"(not so: spec.imagePullSecrets)": {box(`imagePullSecrets: [{name: pull}, {name: root}]`)},
	"(not so: imagePullSecrets)":      {pod(`{imagePullSecrets: [{name: pull}, {name: root}]}`)},
	noMap + "spec)":                   {box(`envFrom: [{configMapRef: {name: another}}]`)},
	noClaim + "v)":                    {pod(`{volumes: [{name: v, persistentVolumeClaim: {claimName: another}}]}`)},
	"valueFrom may only have": {
		container(`env: [{name: A, valueFrom: {fileKeyRef: {key: a}}}]`), container(`envFrom: [{nextRef: {name: a}}]`),
	},
	ofModel: {
		model(fromHTTPS + `, credentials: {name: root}`), model(fromHTTPS + `, credentials: {name: DB}`),
		model(fromHTTPS + `, credentials: {name: "db "}`), model(fromHTTPS + `, credentials: {name: "db, tls "}`),
		model(fromHTTPS + `, credentials: {name: ""}`), model(fromHTTPS + `, credentials: {}`), model(fromHTTPS + `, credentials: {name: null}`),
		box(`model: {credentials: {name: root}}, modelFileURL: "https://a/b"`),
	},
	noClaim + "spec.model.claim)": {
		model(fromHTTPS + `, claim: another`), model(fromHTTPS + `, claim: models-of-others`),
	},
	noClaim + "spec.model.uri)": {
		model(`uri: pvc://another`), model(`uri: pvc://another/models`), model(`uri: pvc://models-of-others/a`), model(`uri: pvc://Models/a`),
		model(`uri: "pvc:// models/a"`), model(`uri: "pvc://%61nother/a"`), model(`uri: "pvc://models@another/a"`),
		model(`uri: "pvc://another?/models"`), model(`uri: pvc://`), model(`uri: pvc:///models`),
	},
	ofAlias: {
		alias("pvc://another/a"), alias("pvc:///models"), box(`model: {uri: ""}, modelFileURL: pvc://another/a`),
		box(`model: {mountPath: /m}, modelFileURL: pvc://another/a`),
	},
	noClaim + "spec.model.uri, spec.modelFileURL)": {box(`model: {uri: pvc://another/a}, modelFileURL: pvc://another/a`)},
	noSecret + "spec.model.credentials, spec.models[b].credentials)": {
		box(`model: {` + fromHTTPS + `, credentials: {name: root}}, models: [{name: a, uri: "pvc://models", mountPath: /a}, {name: b, ` + fromHTTPS + `, mountPath: /b, credentials: {name: root}}]`),
	},
	noSecret + "spec.models[a].credentials)": {several(`name: a, ` + fromHTTPS + `, credentials: {}`)},
	noClaim + "spec.models[a].claim)":        {several(`name: a, ` + fromHTTPS + `, claim: another`)},
	noClaim + "spec.models[a].uri)":          {several(`name: a, uri: pvc://another/a`), several(`name: b, uri: pvc://models/a}, {name: a, mountPath: /a, uri: "pvc://models@another/a"`)},
	"(not so: spec.podTemplate, container fetch-model)": {
		fetcher(`env: [{name: A, valueFrom: {secretKeyRef: {name: root, key: a}}}]`), fetcher(`envFrom: [{secretRef: {name: root}}]`),
	},
	"securityContext of container fetch-model": {
		fetcher(`securityContext: {runAsUser: 0}`), fetcher(`securityContext: {privileged: true}`),
	},
	noClaim + "model)":                     {modelWith(`{volumes: [{name: model, persistentVolumeClaim: {claimName: another}}]}`)},
	"(not so: volume model)":               {modelWith(`{volumes: [{name: model, secret: {secretName: root}}]}`)},
	"spec.podTemplate.spec.volumes: model": {modelWith(`{volumes: [{name: model, hostPath: {path: /}}]}`)},
}

// podFields may not be set at all, known or not.
var podFields = []string{
	`hostNetwork: true`, `hostNetwork: "true"`, `HostNetwork: true`, `hostPID: true`, `hostIPC: true`, `hostUsers: true`,
	`nodeName: control-plane`, `tolerations: [{operator: Exists}]`, `priorityClassName: system-node-critical`, `schedulerName: another`,
	`runtimeClassName: another`, `resourceClaims: [{name: a, resourceClaimName: b}]`, `nextField: 1`,
	`ephemeralContainers: [{name: e, securityContext: {privileged: true}}]`,
}

// A delegated user is refused all of it, with the field; a user with the permissions is not.
func TestDelegatedUsersMayNotUseMore(t *testing.T) {
	t.Parallel()
	c := user(t, "bounded", lists, kindsRole, delegatedRole, scalerRole)
	editor := user(t, "unbounded", nil, "edit", delegatedRole)
	refused := func(text, message string) {
		check(t, c, text, byDelegated, message)
		check(t, editor, text, allowed, "")
	}
	for message, texts := range refusals {
		for _, text := range texts {
			refused(text, message)
		}
	}
	for _, field := range podFields {
		name, _, _ := strings.Cut(field, ":")
		refused(pod("{"+field+"}"), "the fields "+name)
	}
}

// What a delegated user may create, and not, with these annotations of the Namespace and these
// permissions beside the delegated ones.
func TestDelegatedUsersWithOtherLists(t *testing.T) {
	t.Parallel()
	web := rule("apps", []string{"patch"}, "deployments")
	deployments, services := rule("apps", []string{"create"}, "deployments"), rule("", []string{"create"}, "services")
	hostNetwork := pod(`{hostNetwork: true}`)
	withPorts := box(`ports: [{port: 80}], podTemplate: {spec: {hostNetwork: true}}`)
	withRoute, withMetrics := box(`ports: [{port: 80}], route: {hosts: [a.example.com], gateway: {name: a}}`), box(`monitoring: {port: 80}`)
	secretOf := func(name string) string { return box(`envFrom: [{secretRef: {name: "` + name + `"}}]`) }
	ofWeb := map[string]outcome{
		`Eru {deploymentname: web}`: allowed, `Eru {deploymentName: "", deploymentname: web}`: allowed,
		`Eru {deploymentname: other}`: byDelegated, `Eru {deploymentName: web, deploymentname: web}`: allowed,
	}
	for name, test := range map[string]struct {
		lists map[string]string
		rules []rbacv1.PolicyRule
		want  map[string]outcome
	}{
		"empty": {map[string]string{virtualGroup + "/secrets": " , ", virtualGroup + "/claims": ",,"}, nil, map[string]outcome{
			box(``): allowed, secretOf("db"): byDelegated, secretOf(""): byDelegated,
			box(`envFrom: [{configMapRef: {name: settings}}]`): byDelegated, pod(`{serviceAccountName: server}`): byDelegated,
			`UnitedDeployment {deploymentName: web, replicas: 2}`: byDelegated, `Eru {deploymentName: web}`: byDelegated,
			model(fromHTTPS): allowed, model(fromHTTPS + `, claim: ""`): allowed, model(fromHTTPS + `, claim: models`): byDelegated,
			model(fromHTTPS + `, credentials: {}`): byDelegated, model(`uri: pvc://models/a`): byDelegated, model(`uri: "pvc://"`): byDelegated,
			alias("pvc:///a"): byDelegated, alias(strings.Repeat("pvc:////", 2048/8)): byDelegated,
		}},
		// Of no use without being free of the bounds. Needed by a user who is, see "both".
		"routes": {nil, optionalRole, map[string]outcome{
			withRoute: byDelegated, withMetrics: byDelegated,
		}},
		"a-listed-deployment":    {map[string]string{virtualGroup + "/deployments": "web"}, nil, ofWeb},
		"a-permitted-deployment": {nil, []rbacv1.PolicyRule{named(web, "web")}, ofWeb},
		// A part of the permissions is not enough to be free of the bounds, and all of them are.
		"deployments": {nil, []rbacv1.PolicyRule{deployments}, map[string]outcome{withPorts: byDelegated, hostNetwork: allowed}},
		"services":    {nil, []rbacv1.PolicyRule{services}, map[string]outcome{withPorts: byDelegated, hostNetwork: byDelegated}},
		"both": {nil, []rbacv1.PolicyRule{deployments, services}, map[string]outcome{
			withPorts: allowed, hostNetwork: allowed, withRoute: byRequester, withMetrics: byRequester,
		}},
	} {
		c := user(t, name, test.lists, kindsRole, delegatedRole, test.rules)
		for text, want := range test.want {
			check(t, c, text, want, "")
		}
	}
	web = named(web, "web")
	c := user(t, "by-name", nil, kindsRole, delegatedRole, []rbacv1.PolicyRule{web})
	if got, err := tried(t, c, eru, "web", spec{"deploymentname": "other"}); got != byDelegated {
		t.Errorf("the name of the object decides: %s (%v)", got, err)
	}
}

// An update is bounded like a create. What another user has created beyond the bounds is not
// changed by a delegated user, except for its metadata, or to be within them.
func TestDelegatedUsersChangeObjects(t *testing.T) {
	t.Parallel()
	c := user(t, "changes", lists, kindsRole, delegatedRole)
	for name, text := range map[string]string{"listed": model(`uri: pvc://models/a`), "model": model(`uri: pvc://another/a`), "pod": pod(`{hostNetwork: true}`)} {
		k, s := parse(t, text)
		store(t, k.in(admin(t), c.namespace), k.object(name, s), false)
	}
	for _, test := range []struct {
		name, patch string
		want        outcome
	}{
		{"pod", `{"spec":{"image":"evil:1"}}`, byDelegated},
		{"pod", `{"metadata":{"labels":{"a":"b"}}}`, allowed},
		{"pod", `{"spec":{"podTemplate":null}}`, allowed},
		{"pod", `{"spec":{"podTemplate":{"spec":{"hostNetwork":false}}}}`, allowed},
		{"listed", `{"spec":{"image":"a:2"}}`, allowed},
		{"listed", `{"spec":{"model":{"uri":"pvc://models/b"}}}`, allowed},
		{"listed", `{"spec":{"model":{"uri":"pvc://another/b"}}}`, byDelegated},
		{"listed", `{"spec":{"model":null,"modelFileURL":"pvc://another/b"}}`, byDelegated},
		{"listed", `{"spec":{"model":{"uri":"https://a/b","credentials":{"name":"root"}}}}`, byDelegated},
		{"model", `{"spec":{"image":"a:2"}}`, byDelegated},
		{"model", `{"metadata":{"labels":{"a":"b"}}}`, allowed},
		{"model", `{"spec":{"model":null}}`, allowed},
		{"model", `{"spec":{"model":{"uri":"pvc://models/a"}}}`, allowed},
	} {
		_, err := modelBox.in(c, c.namespace).Patch(t.Context(), test.name, types.MergePatchType, []byte(test.patch), metav1.PatchOptions{DryRun: dryRun})
		if got := outcomeOf(err); got != test.want {
			t.Errorf("%s, %s: %s, want %s (%v)", test.name, test.patch, got, test.want, err)
		}
	}
}

// attacks are objects by which a user who may write only the five kinds once had the operator do
// what the user may not do.
var attacks = map[string]string{
	"a privileged pod with hostPath on a chosen node": `{image: "evil:1", podTemplate: {spec: {nodeName: control-plane, hostPID: true,
  containers: [{name: attack, securityContext: {privileged: true}, volumeMounts: [{name: host, mountPath: /host}]}], volumes: [{name: host, hostPath: {path: /}}]}}}`,
	"a DaemonSet on the control plane":                                 `Genericdaemon {image: "evil:1", label: node-role.kubernetes.io/control-plane, podTemplate: {spec: {tolerations: [{operator: Exists}]}}}`,
	"a pod under another service account":                              `App {image: "evil:1", podTemplate: {spec: {serviceAccountName: admin}}}`,
	"the values of a Secret as env":                                    `{image: "evil:1", envFrom: [{secretRef: {name: root}}]}`,
	"one value of a Secret as env":                                     `App {image: "evil:1", envs: [{name: A, valueFrom: {secretKeyRef: {name: root, key: a}}}]}`,
	"a private image by another team's registry credentials":           `{image: "registry.example.com/theirs:1", imagePullSecrets: [{name: root}]}`,
	"the same by an App":                                               `App {image: "registry.example.com/theirs:1", imagePullSecrets: [{name: db}, {name: root}]}`,
	"all values of a Secret, by App":                                   `App {image: "evil:1", command: [env], envFrom: [{secretRef: {name: root}}]}`,
	"a ConfigMap, by App":                                              `App {image: "evil:1", envFrom: [{prefix: A_, configMapRef: {name: theirs}}]}`,
	"a LoadBalancer":                                                   `{image: "evil:1", serviceType: LoadBalancer, ports: [{port: 22}]}`,
	"the Deployment of another user scaled to 0 by a UnitedDeployment": `UnitedDeployment {deploymentName: theirs, replicas: 0}`,
	"the Deployment of another user restarted":                         `Eru {deploymentName: theirs, enabled: true, schedule: "* * * * *"}`,
	"the same by the deprecated name of the field":                     `Eru {deploymentname: theirs, enabled: true, schedule: "* * * * *"}`,
	"the same beside an empty name":                                    `Eru {deploymentName: "", deploymentname: theirs, enabled: true}`,
	"another team's model from its claim":                              `{image: "evil:1", model: {uri: pvc://theirs/weights}}`,
	"the same by the alias":                                            `{image: "evil:1", modelFileURL: pvc://theirs/weights}`,
	"a model written into another team's claim":                        `{image: "evil:1", model: {` + fromHTTPS + `, claim: theirs}}`,
	"the values of a Secret as the credentials of a model":             `{image: "evil:1", model: {uri: s3://evil/key, credentials: {name: root}}}`,
}

// No attack succeeds for a user who may write only the kinds, and of a delegated user only
// what is delegated: pods without permissions.
func TestAttacks(t *testing.T) {
	t.Parallel()
	onlyKinds := user(t, "attacks-only-kinds", lists, kindsRole)
	delegated := user(t, "attacks-delegated", lists, kindsRole, delegatedRole)
	editor := user(t, "attacks-edit", nil, "edit")
	for _, text := range attacks {
		check(t, onlyKinds, text, byRequester, "")
		check(t, delegated, text, byDelegated, "")
		// With edit a user may create the pod and the rest directly.
		check(t, editor, text, allowed, "")
	}
	for _, text := range []string{model(fromHTTPS), `{image: "miner:1", replicas: 1000}`} {
		check(t, onlyKinds, text, byRequester, "")
		check(t, delegated, text, allowed, "")
	}
}

// Each pod with which Kubernetes tests the restricted Pod Security Standard: one that is
// forbidden for what it sets, and not only for what it does not set, is refused.
func TestDelegatedUsersAreRestricted(t *testing.T) {
	t.Parallel()
	c := user(t, "restricted", lists, kindsRole, delegatedRole)
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	refused := 0
	for _, p := range restrictedFixtures(t) {
		complete(&p.Spec)
		template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: p.Annotations}, Spec: p.Spec,
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := tried(t, c, modelBox, "a", spec{"image": "a:1", "podTemplate": template})
		if permitted := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &p.ObjectMeta, &p.Spec)).Allowed; got != byDelegated && (got != allowed || !permitted) {
			t.Errorf("%s: %s, and the standard permits it: %t (%v)", p.Name, got, permitted, err)
		}
		if got == byDelegated {
			refused++
		}
	}
	if refused < 40 {
		t.Errorf("only %d pods were refused", refused)
	}
}

// restrictedFixtures returns the pods that Kubernetes' own tests of the standard forbid.
func restrictedFixtures(t *testing.T) (out []*corev1.Pod) {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/pod-security-admission").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "test", "testdata", "restricted", "v1.37", "fail", "*.yaml"))
	if err != nil || len(files) < 50 {
		t.Fatalf("%d pods were found (%v)", len(files), err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		p := &corev1.Pod{}
		if err := yaml.UnmarshalStrict(data, p); err != nil {
			t.Fatal(err)
		}
		p.Name = filepath.Base(name)
		out = append(out, p)
	}
	return out
}

// complete sets what the restricted standard requires, where a pod does not set it.
func complete(p *corev1.PodSpec) {
	pod := cmp.Or(p.SecurityContext, &corev1.PodSecurityContext{})
	p.SecurityContext = pod
	pod.RunAsNonRoot = cmp.Or(pod.RunAsNonRoot, new(true))
	pod.SeccompProfile = cmp.Or(pod.SeccompProfile, &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault})
	for _, containers := range [][]corev1.Container{p.Containers, p.InitContainers} {
		for i := range containers {
			c := cmp.Or(containers[i].SecurityContext, &corev1.SecurityContext{})
			containers[i].SecurityContext = c
			c.AllowPrivilegeEscalation = cmp.Or(c.AllowPrivilegeEscalation, new(false))
			c.Capabilities = cmp.Or(c.Capabilities, &corev1.Capabilities{})
			c.Capabilities.Drop = append(c.Capabilities.Drop, "ALL")
		}
	}
}

func repeated(count int, item string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", count), ",") + "]"
}

func numbered(count int, item string) string {
	items := make([]string, count)
	for i := range items {
		items[i] = fmt.Sprintf(item, i)
	}
	return "[" + strings.Join(items, ",") + "]"
}

// longest is a URI of the greatest length, of which the API server could make many parts.
func longest(uri string) string { return uri + strings.Repeat("/", 2048-len(uri)) }

// The API server stops an expression that costs too much with an error that helps no user.
// So what is within the bounds must not cost so much, and what is larger is refused for
// being larger. A user with the permissions is not affected.
func TestLargeTemplates(t *testing.T) {
	t.Parallel()
	c := user(t, "large", lists, kindsRole, delegatedRole)
	editor := user(t, "large-edit", nil, "edit")
	const tooLarge = "spec.podTemplate may have no null, at most 16 containers"
	env := `{name: A, valueFrom: {secretKeyRef: {name: db, key: a}}}`
	full := `{name: c, image: "a:1", env: ` + repeated(128, env) + `, envFrom: ` + repeated(64, `{secretRef: {name: db}}`) +
		`, ports: ` + numbered(64, `{containerPort: %d}`) + `, readinessProbe: {httpGet: {port: 80}}, securityContext: {runAsUser: 1, capabilities: {drop: [ALL]}}}`
	var fields, containers strings.Builder
	for i := range 8000 {
		fmt.Fprintf(&fields, "f%d: 1, ", i)
	}
	for i := range 64 {
		fmt.Fprintf(&containers, "f%d: 1, ", i)
	}
	for name, test := range map[string]struct{ text, want string }{
		"all that is allowed": {pod(`{containers: ` + repeated(16, full) + `, initContainers: ` + repeated(16, full) +
			`, imagePullSecrets: ` + repeated(64, `{name: db}`) +
			`, volumes: ` + repeated(64, `{name: v, projected: {sources: `+repeated(32, `{secret: {name: db}}`)+`}}`) + `}`), ""},
		"all that is allowed, refused": {pod(`{containers: ` + repeated(16, strings.ReplaceAll(full, "db", "root")) + `, volumes: ` +
			repeated(64, `{name: v, projected: {sources: `+repeated(32, `{secret: {name: root}}`)+`}}`) + `}`), "(not so: spec.podTemplate, container c"},
		"containers":              {pod(`{containers: ` + repeated(17, `{name: a}`) + `}`), tooLarge},
		"empty containers":        {pod(`{containers: ` + repeated(40000, `{}`) + `}`), tooLarge},
		"init containers":         {pod(`{initContainers: ` + repeated(20000, `{}`) + `}`), tooLarge},
		"volumes":                 {pod(`{volumes: ` + repeated(20000, `{}`) + `}`), tooLarge},
		"env":                     {container(`env: ` + repeated(10000, `{}`)), tooLarge},
		"envFrom":                 {container(`envFrom: ` + repeated(10000, `{}`)), tooLarge},
		"ports":                   {container(`ports: ` + repeated(10000, `{}`)), tooLarge},
		"pull secrets":            {pod(`{imagePullSecrets: ` + repeated(10000, `{}`) + `}`), tooLarge},
		"projections":             {pod(`{volumes: [{name: v, projected: {sources: ` + repeated(10000, `{}`) + `}}]}`), tooLarge},
		"fields of the pod":       {pod(`{` + fields.String() + `}`), tooLarge},
		"fields of podTemplate":   {box(`podTemplate: {` + fields.String() + `}`), tooLarge},
		"fields of a container":   {container(fields.String()), tooLarge},
		"fields of a context":     {container(`securityContext: {` + fields.String() + `}`), tooLarge},
		"fields of 16 containers": {pod(`{containers: ` + repeated(16, `{`+containers.String()+`}`) + `}`), "a field of a container may not be set"},
		"capabilities":            {container(`securityContext: {capabilities: {add: ` + repeated(20000, `A`) + `}}`), "the securityContext of container a"},
		"a source with fields":    {container(`env: [{name: A, valueFrom: {` + fields.String() + `}}]`), "valueFrom may only have"},
		"tolerations":             {pod(`{tolerations: ` + repeated(10000, `{}`) + `}`), "the fields tolerations"},
		"a model, and all that is allowed": {`{image: "a:1", model: {uri: "` + longest("pvc://models") + `", credentials: {name: db}, claim: models}, modelFileURL: "` +
			longest("pvc://models") + `", podTemplate: {spec: {containers: ` + repeated(16, full) + `, volumes: ` + repeated(64, `{name: v, emptyDir: {}}`) + `}}}`, ""},
		"a long URI": {alias(longest("pvc://another")), ofAlias},
		"eight models": {box(`models: ` + numbered(8, `{name: m%d, mountPath: "/m%[1]d", uri: "`+longest("pvc://models")+`", credentials: {name: db}, claim: models, include: `+
			repeated(16, strings.Repeat("a", 128))+`}`)), ""},
		"1,024 typed envs": {`{image: "a:1", envs: ` + numbered(1024, `{name: A%d, valueFrom: {secretKeyRef: {name: db, key: a}}}`) + `, envFrom: ` +
			repeated(64, `{secretRef: {name: db}}`) + `}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := byDelegated
			if test.want == "" {
				want = allowed
			}
			check(t, c, test.text, want, test.want)
			check(t, editor, test.text, allowed, "")
		})
	}
}

// The annotations of a Namespace may be long, too.
func TestLongLists(t *testing.T) {
	t.Parallel()
	c := user(t, "long", map[string]string{virtualGroup + "/secrets": strings.Repeat("secret-of-the-team,", 1000) + "db"}, kindsRole, delegatedRole)
	for text, want := range map[string]outcome{
		`{image: "a:1", envFrom: [{secretRef: {name: db}}]}`:   allowed,
		`{image: "a:1", envFrom: [{secretRef: {name: root}}]}`: byDelegated,
	} {
		check(t, c, text, want, "")
	}
}
