// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"maps"
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
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// parse decodes a spec in YAML.
func parse(t *testing.T, text string) spec {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	var out map[string]any
	// As the client does: integers become int64.
	if err := utiljson.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// lists are the annotations of a Namespace that allows one object of each type.
var lists = map[string]string{
	virtualGroup + "/secrets":          "db, tls ,pull",
	virtualGroup + "/config-maps":      "settings",
	virtualGroup + "/service-accounts": "server",
	virtualGroup + "/claims":           "models",
	virtualGroup + "/deployments":      "web, api",
}

// What a delegated user is likely to need.
const honest = `
image: server:1
imagePullPolicy: IfNotPresent
imagePullSecrets: [{name: pull}]
command: [serve]
args: [--port=80]
resources: {limits: {memory: 8Gi, nvidia.com/gpu: "1"}}
sharedMemory: 2Gi
strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}
progressDeadlineSeconds: 3600
terminationGracePeriodSeconds: 60
ports: [{port: 80}]
serviceType: ClusterIP
envs: [{name: A, value: b}, {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}, {name: PW, valueFrom: {secretKeyRef: {name: db, key: pw}}},
  {name: C, valueFrom: {configMapKeyRef: {name: settings, key: c}}}]
envFrom: [{prefix: X_, secretRef: {name: db}}, {configMapRef: {name: settings}}]
readinessProbe: {httpGet: {path: /, port: 80}}
podTemplate:
  metadata: {creationTimestamp: null}
  spec:
    hostNetwork: false
    serviceAccountName: server
    automountServiceAccountToken: false
    nodeSelector: {gpu: "true"}
    affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: kubernetes.io/hostname}}]}}
    topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
    securityContext: {runAsNonRoot: true, runAsUser: 1000, fsGroup: 1000, seccompProfile: {type: RuntimeDefault}}
    initContainers:
    - name: fetch
      image: fetch:1
      restartPolicy: Always
      command: [fetch]
      env: [{name: T, valueFrom: {secretKeyRef: {name: db, key: t}}}]
      volumeMounts: [{name: cache, mountPath: /cache}]
    containers:
    - name: box
      securityContext: {allowPrivilegeEscalation: false, privileged: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}}
      volumeMounts: [{name: cache, mountPath: /cache}]
      lifecycle: {preStop: {exec: {command: [sleep, "1"]}}}
    - {name: sidecar, image: "s:1", ports: [{containerPort: 81}], livenessProbe: {tcpSocket: {port: 81}}}
    volumes:
    - {name: cache, emptyDir: {sizeLimit: 1Gi}}
    - {name: tls, secret: {secretName: tls}}
    - {name: settings, configMap: {name: settings}}
    - {name: models, persistentVolumeClaim: {claimName: models, readOnly: true}}
    - {name: weights, image: {reference: "weights:1"}}
    - {name: all, projected: {sources: [{secret: {name: db}}, {configMap: {name: settings}}, {downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}]}}
    - {name: info, downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}
`

func TestDelegatedUsersMayUseWhatIsListed(t *testing.T) {
	t.Parallel()
	c := user(t, "honest", lists, kindsRole, delegatedRole)
	for name, test := range map[string]struct {
		kind kind
		text string
	}{
		"a ModelBox with much": {modelBox, honest},
		"an App":               {app, `{image: "a:1", ports: [{port: 80}], podTemplate: {spec: {containers: [{name: sidecar, image: "s:1"}]}}}`},
		"an App with its own fields": {app, `{image: "a:1", imagePullPolicy: Always, imagePullSecrets: [{name: pull}, {name: db}], command: [a], args: [b],
  envFrom: [{secretRef: {name: db}}, {configMapRef: {name: settings}}], progressDeadlineSeconds: 60}`},
		"fields of podTemplate":             {modelBox, pod(`{imagePullSecrets: [{name: pull}], terminationGracePeriodSeconds: 60}`)},
		"a Genericdaemon":                   {genericdaemon, `{image: "a:1", label: logs, podTemplate: {spec: {volumes: [{name: v}]}}}`},
		"a UnitedDeployment":                {unitedDeployment, `{deploymentName: api, replicas: 3}`},
		"an Eru":                            {eru, `{deploymentName: web, enabled: true}`},
		"an Eru by the deprecated field":    {eru, `{deploymentname: web, enabled: true}`},
		"the default service account":       {modelBox, `{image: "a:1", podTemplate: {spec: {serviceAccountName: default, serviceAccount: default}}}`},
		"an empty podTemplate":              {modelBox, `{image: "a:1", podTemplate: {}}`},
		"a podTemplate with an empty spec":  {modelBox, `{image: "a:1", podTemplate: {spec: {}}}`},
		"an empty type of the Service":      {modelBox, `{image: "a:1", serviceType: "", ports: [{port: 80, nodePort: 0}]}`},
		"an environment variable with null": {modelBox, `{image: "a:1", envs: [{name: A}]}`},
	} {
		if got, err := tried(t, c, test.kind, "a", parse(t, test.text)); got != allowed {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// pod is a spec with a podTemplate.
func pod(text string) string { return `{image: "a:1", podTemplate: {spec: ` + text + `}}` }

func box(text string) string { return pod(`{containers: [{name: a, ` + text + `}]}`) }

// refusals are specs of a ModelBox and a part of the error.
var refusals = map[string]struct{ text, want string }{
	"a LoadBalancer":            {`{image: "a:1", serviceType: LoadBalancer, ports: [{port: 80}]}`, "spec.serviceType must be ClusterIP"},
	"a Service with node ports": {`{image: "a:1", serviceType: NodePort, ports: [{port: 80}]}`, "spec.serviceType must be ClusterIP"},
	"a nodePort":                {`{image: "a:1", ports: [{port: 80, nodePort: 30080}]}`, "spec.ports[*].nodePort"},
	"labels of pods":            {`{image: "a:1", podTemplate: {metadata: {labels: {app: another}}}}`, "metadata.labels"},
	"annotations of pods":       {`{image: "a:1", podTemplate: {metadata: {annotations: {"k8s.v1.cni.cncf.io/networks": "host"}}}}`, "metadata.annotations"},
	"a field of podTemplate":    {`{image: "a:1", podTemplate: {another: 1}}`, "the fields another"},
	"a patch directive":         {pod(`{$patch: replace}`), "the fields $patch"},
	"hostNetwork":               {pod(`{hostNetwork: true}`), "the fields hostNetwork"},
	"hostNetwork, as text":      {pod(`{hostNetwork: "true"}`), "the fields hostNetwork"},
	"HostNetwork":               {pod(`{HostNetwork: true}`), "the fields HostNetwork"},
	"hostPID":                   {pod(`{hostPID: true}`), "the fields hostPID"},
	"hostIPC":                   {pod(`{hostIPC: true}`), "the fields hostIPC"},
	"hostUsers":                 {pod(`{hostUsers: true}`), "the fields hostUsers"},
	"nodeName":                  {pod(`{nodeName: control-plane}`), "the fields nodeName"},
	"tolerations":               {pod(`{tolerations: [{operator: Exists}]}`), "the fields tolerations"},
	"a priority class":          {pod(`{priorityClassName: system-node-critical}`), "the fields priorityClassName"},
	"a scheduler":               {pod(`{schedulerName: another}`), "the fields schedulerName"},
	"a runtime class":           {pod(`{runtimeClassName: another}`), "the fields runtimeClassName"},
	"resource claims":           {pod(`{resourceClaims: [{name: a, resourceClaimName: b}]}`), "the fields resourceClaims"},
	"a field of the future":     {pod(`{nextField: 1}`), "the fields nextField"},
	"another service account":   {pod(`{serviceAccountName: admin}`), "/service-accounts of the Namespace may be used (not so: admin)"},
	"its alias":                 {pod(`{serviceAccount: admin}`), "/service-accounts of the Namespace may be used (not so: admin)"},
	"a token":                   {pod(`{automountServiceAccountToken: true}`), "automountServiceAccountToken may only be false"},
	"a sysctl":                  {pod(`{securityContext: {sysctls: [{name: a, value: b}]}}`), "securityContext of the pod"},
	"root":                      {pod(`{securityContext: {runAsUser: 0}}`), "securityContext of the pod"},
	"may be root":               {box(`securityContext: {runAsNonRoot: false}`), "securityContext of container a"},
	"privileged":                {box(`securityContext: {privileged: true}`), "securityContext of container a"},
	"privilege escalation":      {box(`securityContext: {allowPrivilegeEscalation: true}`), "securityContext of container a"},
	"capabilities":              {box(`securityContext: {capabilities: {add: [SYS_ADMIN]}}`), "securityContext of container a"},
	"no seccomp":                {box(`securityContext: {seccompProfile: {type: Unconfined}}`), "securityContext of container a"},
	"a security field":          {box(`securityContext: {nextField: 1}`), "securityContext of container a"},
	"privileged init":           {pod(`{initContainers: [{name: i, securityContext: {privileged: true}}]}`), "securityContext of container i"},
	"a debug container":         {pod(`{ephemeralContainers: [{name: e, securityContext: {privileged: true}}]}`), "the fields ephemeralContainers"},
	"a field of a container":    {box(`nextField: 1`), "a (nextField)"},
	"a block device":            {box(`volumeDevices: [{name: a, devicePath: /dev/a}]`), "a (volumeDevices)"},
	"a hostPort":                {box(`ports: [{containerPort: 80, hostPort: 80}]`), "hostPort and hostIP of the containers a"},
	"a hostIP":                  {box(`ports: [{containerPort: 80, hostIP: 10.0.0.1}]`), "hostPort and hostIP of the containers a"},
	"a probe of another host":   {`{image: "a:1", livenessProbe: {httpGet: {port: 80, host: 169.254.169.254}}}`, "lifecycle handlers (spec)"},
	"such a startup probe":      {`{image: "a:1", startupProbe: {tcpSocket: {port: 80, host: 169.254.169.254}}}`, "lifecycle handlers (spec)"},
	"a handler of another host": {box(`lifecycle: {preStop: {httpGet: {port: 80, host: 169.254.169.254}}}`), "container a)"},
	"hostPath":                  {pod(`{volumes: [{name: v, hostPath: {path: /}}]}`), "spec.podTemplate.spec.volumes: v"},
	"nfs":                       {pod(`{volumes: [{name: v, nfs: {server: s, path: /}}]}`), "spec.podTemplate.spec.volumes: v"},
	"csi":                       {pod(`{volumes: [{name: v, csi: {driver: d}}]}`), "spec.podTemplate.spec.volumes: v"},
	"a claim that is created":   {pod(`{volumes: [{name: v, ephemeral: {}}]}`), "spec.podTemplate.spec.volumes: v"},
	"a projected token":         {pod(`{volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]}`), "no serviceAccountToken"},
	"a projected certificate":   {pod(`{volumes: [{name: v, projected: {sources: [{podCertificate: {}}]}}]}`), "spec.podTemplate.spec.volumes: v"},
	"null":                      {pod(`{volumes: null}`), "spec.podTemplate may have no null"},
	"null in a container":       {box(`env: null`), "spec.podTemplate may have no null"},
	"a Secret in envs":          {`{image: "a:1", envs: [{name: A, valueFrom: {secretKeyRef: {name: root, key: a}}}]}`, "/secrets of the Namespace may be used (not so: spec)"},
	"a Secret in envFrom":       {`{image: "a:1", envFrom: [{secretRef: {name: root}}]}`, "/secrets of the Namespace may be used (not so: spec)"},
	"a Secret in env":           {box(`env: [{name: A, valueFrom: {secretKeyRef: {name: root, key: a}}}]`), "(not so: spec.podTemplate, container a)"},
	"a Secret in a volume":      {pod(`{volumes: [{name: v, secret: {secretName: root}}]}`), "(not so: volume v)"},
	"a projected Secret":        {pod(`{volumes: [{name: v, projected: {sources: [{secret: {name: db}}, {secret: {name: root}}]}}]}`), "(not so: volume v)"},
	"a Secret without a name":   {pod(`{volumes: [{name: v, secret: {}}]}`), "(not so: volume v)"},
	"a pull Secret of the spec": {`{image: "a:1", imagePullSecrets: [{name: pull}, {name: root}]}`, "(not so: spec.imagePullSecrets)"},
	"a pull Secret":             {pod(`{imagePullSecrets: [{name: pull}, {name: root}]}`), "(not so: imagePullSecrets)"},
	"a ConfigMap":               {`{image: "a:1", envFrom: [{configMapRef: {name: another}}]}`, "/config-maps of the Namespace may be used (not so: spec)"},
	"a ConfigMap in a volume":   {pod(`{volumes: [{name: v, configMap: {name: another}}]}`), "(not so: volume v)"},
	"a claim":                   {pod(`{volumes: [{name: v, persistentVolumeClaim: {claimName: another}}]}`), "/claims of the Namespace may be used (not so: v)"},
	"a key of a file":           {box(`env: [{name: A, valueFrom: {fileKeyRef: {key: a}}}]`), "valueFrom may only have"},
	"a pod of null":             {pod(`null`), "spec.podTemplate may have no null"},
	"a volume of null":          {pod(`{volumes: [{name: v, emptyDir: null}]}`), "spec.podTemplate may have no null"},
	"a security context":        {pod(`{securityContext: null}`), "spec.podTemplate may have no null"},
	"another source":            {box(`envFrom: [{nextRef: {name: a}}]`), "valueFrom may only have"},
}

// A delegated user is refused all of it, with the field; a user with the rights is not.
func TestDelegatedUsersMayNotUseMore(t *testing.T) {
	t.Parallel()
	c := user(t, "bounded", lists, kindsRole, delegatedRole)
	editor := user(t, "unbounded", nil, "edit", delegatedRole)
	all := maps.Clone(refusals)
	maps.Copy(all, modelRefusals)
	for name, test := range all {
		t.Run(name, func(t *testing.T) {
			s := parse(t, test.text)
			got, err := tried(t, c, modelBox, "a", s)
			if got != byDelegated || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s, want %s with %q (%v)", got, byDelegated, test.want, err)
			}
			if got, err := tried(t, editor, modelBox, "a", s); got != allowed {
				t.Errorf("with the role edit: %s (%v)", got, err)
			}
		})
	}
}

// Without annotations of the Namespace, a delegated user may use no object by its name.
func TestDelegatedUsersWithoutLists(t *testing.T) {
	t.Parallel()
	c := user(t, "unlisted", map[string]string{virtualGroup + "/secrets": " , "}, kindsRole, delegatedRole)
	for text, want := range map[string]outcome{
		`{image: "a:1"}`: allowed,
		`{image: "a:1", envFrom: [{secretRef: {name: db}}]}`:          byDelegated,
		`{image: "a:1", envFrom: [{secretRef: {name: ""}}]}`:          byDelegated,
		`{image: "a:1", envFrom: [{configMapRef: {name: settings}}]}`: byDelegated,
		pod(`{serviceAccountName: server}`):                           byDelegated,
	} {
		if got, err := tried(t, c, modelBox, "a", parse(t, text)); got != want {
			t.Errorf("%s: %s, want %s (%v)", text, got, want, err)
		}
	}
	for _, k := range []kind{unitedDeployment, eru} {
		if got, err := tried(t, c, k, "a", k.spec); got != byDelegated {
			t.Errorf("%s: %s (%v)", k.name, got, err)
		}
	}
}

// The deprecated field of an Eru names its Deployment, and the name of the object does not.
func TestDelegatedUsersAndTheDeprecatedField(t *testing.T) {
	t.Parallel()
	listed := user(t, "deprecated-listed", map[string]string{virtualGroup + "/deployments": "web"}, kindsRole, delegatedRole)
	patches := named(rule("apps", []string{"patch"}, "deployments"), "web")
	permitted := user(t, "deprecated-permitted", nil, kindsRole, delegatedRole, []rbacv1.PolicyRule{patches})
	for _, c := range []tenant{listed, permitted} {
		for name, test := range map[string]struct {
			text string
			want outcome
		}{
			"a":    {`{deploymentname: web}`, allowed},
			"b":    {`{deploymentName: "", deploymentname: web}`, allowed},
			"web":  {`{deploymentname: other}`, byDelegated},
			"both": {`{deploymentName: web, deploymentname: web}`, allowed},
		} {
			if got, err := tried(t, c, eru, name, parse(t, test.text)); got != test.want {
				t.Errorf("%s, %s: %s, want %s (%v)", c.namespace, test.text, got, test.want, err)
			}
		}
	}
}

// Part of the rights is not enough to be free of the bounds, and all of them are.
func TestDelegatedUsersWithSomeRights(t *testing.T) {
	t.Parallel()
	deployments := rule("apps", []string{"create"}, "deployments")
	services := rule("", []string{"create"}, "services")
	hostNetwork := parse(t, `{image: "a:1", ports: [{port: 80}], podTemplate: {spec: {hostNetwork: true}}}`)
	noPorts := parse(t, pod(`{hostNetwork: true}`))
	for namespace, test := range map[string]struct {
		rules           []rbacv1.PolicyRule
		ports, portless outcome
	}{
		"some-deployments": {[]rbacv1.PolicyRule{deployments}, byDelegated, allowed},
		"some-services":    {[]rbacv1.PolicyRule{services}, byDelegated, byDelegated},
		"some-both":        {[]rbacv1.PolicyRule{deployments, services}, allowed, allowed},
	} {
		c := user(t, namespace, nil, kindsRole, delegatedRole, test.rules)
		if got, err := tried(t, c, modelBox, "a", hostNetwork); got != test.ports {
			t.Errorf("%s, with ports: %s, want %s (%v)", namespace, got, test.ports, err)
		}
		if got, err := tried(t, c, modelBox, "a", noPorts); got != test.portless {
			t.Errorf("%s, without ports: %s, want %s (%v)", namespace, got, test.portless, err)
		}
	}
}

// An object beyond the bounds, which another user has created, is not changed by a
// delegated user, except for its metadata.
func TestDelegatedUsersAndObjectsOfOthers(t *testing.T) {
	t.Parallel()
	c := user(t, "others", nil, kindsRole, delegatedRole)
	admin, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	store(t, modelBox.in(admin, c.namespace), modelBox.object("a", parse(t, pod(`{hostNetwork: true}`))), false)
	for patch, want := range map[string]outcome{
		`{"spec":{"image":"evil:1"}}`:                             byDelegated,
		`{"metadata":{"labels":{"a":"b"}}}`:                       allowed,
		`{"spec":{"podTemplate":null}}`:                           allowed,
		`{"spec":{"podTemplate":{"spec":{"hostNetwork":false}}}}`: allowed,
	} {
		_, err := modelBox.in(c, c.namespace).Patch(t.Context(), "a", types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: dryRun})
		if got := outcomeOf(err); got != want {
			t.Errorf("%s: %s, want %s (%v)", patch, got, want, err)
		}
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
	permitted := func(p *corev1.Pod) bool {
		return policy.AggregateCheckResults(evaluator.EvaluatePod(level, &p.ObjectMeta, &p.Spec)).Allowed
	}
	refused := 0
	for name, p := range restrictedFixtures(t) {
		complete(&p.Spec)
		got, err := try(t.Context(), c, p)
		if got != allowed && got != byDelegated {
			t.Errorf("%s: %s", name, got)
		}
		if !permitted(p) && got != byDelegated {
			t.Errorf("%s: %s, but the restricted Pod Security Standard forbids it (%v)", name, got, err)
		}
		if got == byDelegated {
			refused++
		}
	}
	if refused < 40 {
		t.Errorf("only %d pods were refused", refused)
	}
	t.Logf("%d pods were refused", refused)
}

// try creates a ModelBox with the template of a pod.
func try(ctx context.Context, c tenant, p *corev1.Pod) (outcome, error) {
	template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: p.Annotations}, Spec: p.Spec,
	})
	if err != nil {
		return "", err
	}
	obj := modelBox.object("a", spec{"image": "a:1", "podTemplate": template})
	_, err = modelBox.in(c, c.namespace).Create(ctx, obj, metav1.CreateOptions{DryRun: dryRun})
	return outcomeOf(err), err
}

// restrictedFixtures returns the pods that Kubernetes' own tests of the standard forbid.
func restrictedFixtures(t *testing.T) map[string]*corev1.Pod {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/pod-security-admission").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "test", "testdata", "restricted", "v1.37", "fail", "*.yaml"))
	if err != nil || len(files) < 50 {
		t.Fatalf("%d pods were found (%v)", len(files), err)
	}
	out := map[string]*corev1.Pod{}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		p := &corev1.Pod{}
		if err := yaml.UnmarshalStrict(data, p); err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(name)] = p
	}
	return out
}

// complete sets what the restricted standard requires, where a pod does not set it.
func complete(p *corev1.PodSpec) {
	if p.SecurityContext == nil {
		p.SecurityContext = &corev1.PodSecurityContext{}
	}
	setDefault(&p.SecurityContext.RunAsNonRoot, true)
	if p.SecurityContext.SeccompProfile == nil {
		p.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	for _, containers := range [][]corev1.Container{p.Containers, p.InitContainers} {
		for i := range containers {
			c := &containers[i]
			if c.SecurityContext == nil {
				c.SecurityContext = &corev1.SecurityContext{}
			}
			setDefault(&c.SecurityContext.AllowPrivilegeEscalation, false)
			if c.SecurityContext.Capabilities == nil {
				c.SecurityContext.Capabilities = &corev1.Capabilities{}
			}
			c.SecurityContext.Capabilities.Drop = append(c.SecurityContext.Capabilities.Drop, "ALL")
		}
	}
}

func setDefault(field **bool, value bool) {
	if *field == nil {
		*field = &value
	}
}
