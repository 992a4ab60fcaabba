// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

var reserved = []Reserved{
	{Field: "image", Instead: "spec.image"},
	{Field: "resources", Instead: "spec.resources"},
	{Field: "ports", Instead: "spec.ports"},
	{Field: "env", Instead: "spec.envs"},
	{Field: "envFrom", Instead: "spec.envFrom"},
	{Field: "readinessProbe", Instead: "spec.readinessProbe"},
	{Field: "livenessProbe", Instead: "spec.livenessProbe"},
	{Field: "startupProbe", Instead: "spec.startupProbe"},
}

func web() *Pods {
	return &Pods{AppName: "modelbox", Instance: "web", Container: corev1.Container{Name: "main", Image: "server:1"}, Reserved: reserved}
}

// ownErrors returns the errors of a template by the operator's own rules.
func ownErrors(p *Pods, template *runtime.RawExtension) field.ErrorList {
	p.Template = template
	over, errs := decode(template)
	if over == nil {
		return errs
	}
	model, _ := p.model()
	errs = append(errs, p.reserved(&over.PodTemplateSpec, model)...)
	effective, unmerged := p.merge(over, model)
	errs = append(errs, unmerged...)
	located := paths{pods: p, over: &over.PodTemplateSpec, effective: &effective, model: model, known: errs}
	return append(errs, located.locate(keys(&effective))...)
}

// validate returns a template's errors by the operator's own rules, whose paths are relative to the
// template.
func validate(template *corev1.PodTemplateSpec) field.ErrorList {
	data, _ := json.Marshal(template)
	errs := ownErrors(web(), &runtime.RawExtension{Raw: data})
	for _, err := range errs {
		err.Field = strings.TrimPrefix(err.Field, "spec.podTemplate.")
	}
	return errs
}

func TestMainContainer(t *testing.T) {
	const of = `: Forbidden: may not be set on the main container; use spec.`
	ruletest.Run(t, map[string]ruletest.Row{
		"what is not reserved": {`{spec: {containers: [{name: main, workingDir: /a, args: [b], securityContext: {}, lifecycle: {}}]}}`, ``},
		"empty, which is nothing": {
			`{spec: {containers: [{name: main, image: "", resources: {}, ports: [], env: [], envFrom: [], readinessProbe: null, livenessProbe: {}}]}}`, ``,
		},
		"what is reserved": {`
spec:
  containers:
  - {name: a, image: a}
  - name: main
    image: A
    resources: {limits: {a: 1}}
    ports: [{containerPort: 0}]
    env: [{name: ""}]
    envFrom: [{}]
    readinessProbe: {periodSeconds: 1}
    livenessProbe: {exec: {command: [a]}}
    startupProbe: {grpc: {port: 0}}`, `
spec.containers[1].image` + of + `image
spec.containers[1].resources` + of + `resources
spec.containers[1].ports` + of + `ports
spec.containers[1].env` + of + `envs
spec.containers[1].envFrom` + of + `envFrom
spec.containers[1].readinessProbe` + of + `readinessProbe
spec.containers[1].livenessProbe` + of + `livenessProbe
spec.containers[1].startupProbe` + of + `startupProbe`},
		"requests, and claims": {
			`{spec: {containers: [{name: main, resources: {requests: {cpu: 1}}}]}}`, `spec.containers[0].resources` + of + `resources`,
		},
		"what Kubernetes validates": {
			`{spec: {containers: [{name: main, imagePullPolicy: always, volumeMounts: [{name: a, mountPath: /a}]}]}}`, ``, // By Kubernetes.
		},
	}, validate)
}

// A kind that has no field for probes leaves them to the template.
func TestMainContainerOfAnotherKind(t *testing.T) {
	t.Parallel()
	pods := web()
	pods.Reserved = []Reserved{reserved[0], {Field: "unknown", Instead: "spec.unknown"}}
	want := `
spec.podTemplate.spec.containers[0].image: Forbidden: may not be set on the main container; use spec.image
spec.podTemplate.spec.containers[0].env[1].name: Duplicate value: "A"`
	errs := ownErrors(pods, raw(t, `spec: {containers: [{name: main, image: a, readinessProbe: {tcpSocket: {port: http}}, env: [{name: A}, {name: A}]}]}`))
	if got := ruletest.Lines(errs); got != strings.TrimSpace(want) {
		t.Errorf("errors:\n%s\nwant:%s", got, want)
	}
}

// A field that may be set in one of two places is refused in the template only if it is set in
// the object's own field.
func TestFieldsOfEitherPlace(t *testing.T) {
	t.Parallel()
	const once = ": Forbidden: may be set in one place only: remove it here, or remove spec."
	const all = `{containers: [{name: a, command: [a]}, {name: main, command: [a], args: [a], imagePullPolicy: Never, envFrom: [{prefix: A_}]}],
imagePullSecrets: [{name: a}], terminationGracePeriodSeconds: 30}`
	for name, test := range map[string]struct {
		spec, want string
		own        func(*Pods)
	}{
		"in the template alone": {all, ``, func(*Pods) {}},
		"in the object alone": {
			`{containers: [{name: main, command: [], args: null, imagePullPolicy: ""}, {name: a, command: [a], args: [a], imagePullPolicy: Never}], imagePullSecrets: []}`,
			``, setAll,
		},
		"in both": {all, `
spec.podTemplate.spec.imagePullSecrets` + once + `imagePullSecrets
spec.podTemplate.spec.terminationGracePeriodSeconds` + once + `terminationGracePeriodSeconds
spec.podTemplate.spec.containers[1].imagePullPolicy` + once + `imagePullPolicy
spec.podTemplate.spec.containers[1].command` + once + `command
spec.podTemplate.spec.containers[1].args` + once + `args
spec.podTemplate.spec.containers[1].envFrom` + once + `envFrom`, setAll},
		"an empty list, which says nothing": {`{containers: [{name: main, envFrom: []}]}`, ``, setAll},
		"zero in both": {`{terminationGracePeriodSeconds: 0}`, `
spec.podTemplate.spec.terminationGracePeriodSeconds` + once + `terminationGracePeriodSeconds`,
			func(o *Pods) { o.TerminationGracePeriodSeconds = new(int64(0)) }},
	} {
		owner := web()
		owner.Reserved = nil
		for _, f := range []string{"imagePullPolicy", "command", "args", "envFrom"} {
			owner.Reserved = append(owner.Reserved, Reserved{Field: f, Instead: "spec." + f, Either: true})
		}
		test.own(owner)
		errs := ownErrors(owner, raw(t, "spec: "+test.spec))
		if got := ruletest.Lines(errs); got != strings.TrimSpace(test.want) {
			t.Errorf("%s: errors:\n%s\nwant:%s", name, got, test.want)
		}
		if len(rules.Unbuildable(errs)) != len(errs) {
			t.Errorf("%s: children would be built of two values", name)
		}
	}
}

func setAll(o *Pods) {
	c := &o.Container
	c.Command, c.Args, c.ImagePullPolicy, c.EnvFrom = []string{"b"}, []string{"b"}, corev1.PullAlways, []corev1.EnvFromSource{{Prefix: "B_"}}
	o.ImagePullSecrets, o.TerminationGracePeriodSeconds = []corev1.LocalObjectReference{{Name: "b"}}, new(int64(60))
}

func TestSharedMemory(t *testing.T) {
	t.Parallel()
	const (
		volume = ": Forbidden: shared-memory is the volume of spec.sharedMemory; use another name, or remove spec.sharedMemory"
		mount  = ": Forbidden: spec.sharedMemory is mounted at /dev/shm; remove this mount, or remove spec.sharedMemory"
	)
	for template, want := range map[string]string{
		`{spec: {volumes: [{name: a}], containers: [{name: main, volumeMounts: [{name: a, mountPath: /dev/shm2}, {name: a, mountPath: /dev}]}]}}`: ``,
		`{spec: {containers: [{name: a, volumeMounts: [{name: shared-memory, mountPath: /dev/shm}]}]}}`:                                           ``,
		`{spec: {volumes: [{name: a}, {name: shared-memory}]}}`:                                                                                   `spec.podTemplate.spec.volumes[1].name` + volume,
		`{spec: {containers: [{name: main, volumeMounts: [{name: a, mountPath: /dev/shm}, {name: b, mountPath: /dev/../dev//shm/}]}]}}`: `spec.podTemplate.spec.containers[0].volumeMounts[0].mountPath` + mount + `
spec.podTemplate.spec.containers[0].volumeMounts[1].mountPath` + mount,
	} {
		owner := web()
		if errs := ownErrors(owner, raw(t, template)); len(errs) > 0 {
			t.Errorf("without sharedMemory, %s: %v", template, errs)
		}
		owner.SharedMemory = new(resource.MustParse("1Gi"))
		if got := ruletest.Lines(ownErrors(owner, raw(t, template))); got != want {
			t.Errorf("%s: errors:\n%s\nwant:\n%s", template, got, want)
		}
	}
}

func TestOwnLabels(t *testing.T) {
	const ours = `: may not differ from the operator's value, because selectors use this label; remove it`
	ruletest.Run(t, map[string]ruletest.Row{
		"nothing":             {`{}`, ``},
		"labels, annotations": {`{metadata: {labels: {a: "", b.c/d: e}, annotations: {A.B/c: "any thing"}}}`, ``},
		"the operator's labels as they are": {
			`{metadata: {labels: {app.kubernetes.io/name: modelbox, app.kubernetes.io/instance: web, app.kubernetes.io/managed-by: modelbox-operator}}}`, ``,
		},
		"the operator's labels": {
			`{metadata: {labels: {app.kubernetes.io/name: a, app.kubernetes.io/instance: b, app.kubernetes.io/managed-by: ""}}}`, `
metadata.labels[app.kubernetes.io/instance]: Invalid value: "b"` + ours + `
metadata.labels[app.kubernetes.io/managed-by]: Invalid value: ""` + ours + `
metadata.labels[app.kubernetes.io/name]: Invalid value: "a"` + ours,
		},
	}, validate)
}

// Lists that Kubernetes accepts, and server-side apply does not.
func TestRepeatedKeys(t *testing.T) {
	ruletest.Run(t, map[string]ruletest.Row{
		"none": {`
spec:
  hostAliases: [{ip: 10.0.0.1}, {ip: 10.0.0.2}]
  imagePullSecrets: [{name: a}, {name: b}]
  containers: [{name: a, image: a, env: [{name: A}, {name: a}], ports: [{containerPort: 1}, {containerPort: 1, protocol: UDP}]}]`, ``},
		"hostAliases": {`{spec: {hostAliases: [{ip: 10.0.0.1}, {ip: 10.0.0.1}]}}`, `spec.hostAliases[1].ip: Duplicate value: "10.0.0.1"`},
		"imagePullSecrets": {`{spec: {imagePullSecrets: [{name: a}, {name: a}, {}, {}]}}`,
			"spec.imagePullSecrets[1].name: Duplicate value: \"a\"\nspec.imagePullSecrets[3].name: Duplicate value: \"\""},
		"metadata": {`{metadata: {finalizers: [a/b, a/b], ownerReferences: [{uid: a}, {uid: a}]}}`, `
metadata.finalizers[1]: Duplicate value: "a/b"
metadata.ownerReferences[1].uid: Duplicate value: "a"`},
		"of a container": {`
spec:
  containers:
  - name: a
    image: a
    env: [{name: A}, {name: A}]
    ports: [{containerPort: 1, name: x}, {containerPort: 1, protocol: TCP}]
    resources: {claims: [{name: c, request: a}, {name: c, request: b}]}`, `
spec.containers[0].env[1].name: Duplicate value: "A"
spec.containers[0].ports[1].containerPort: Duplicate value: 1
spec.containers[0].resources.claims[1].name: Duplicate value: "c"`},
		"options of a mount": {
			`{spec: {initContainers: [{name: a, volumeMounts: [{name: b, mountPath: /b}, {name: v, mountPath: /v, bindMountOptions: [noexec, nodev, noexec]}]}]}}`,
			`spec.initContainers[0].volumeMounts[1].bindMountOptions[2]: Duplicate value: "noexec"`,
		},
		"of an init container": {`{spec: {initContainers: [{name: a, image: a, env: [{name: A}, {name: A}]}]}}`,
			`spec.initContainers[0].env[1].name: Duplicate value: "A"`},
		"of the main container": {`{spec: {containers: [{name: main, env: [], volumeMounts: []}]}}`, ``},
	}, validate)
}

// Images that Kubernetes accepts, and no container runtime does.
func TestImagesOfTheTemplate(t *testing.T) {
	ruletest.Run(t, map[string]ruletest.Row{
		"none": {`{spec: {containers: [{name: a}], initContainers: [{name: b}]}}`, ``}, // Kubernetes says so.
		"unreadable": {`{spec: {containers: [{name: a, image: A}], initContainers: [{name: b, image: "a:"}]}}`, `
spec.containers[0].image: Invalid value: "A": must be an image reference such as registry.example.com/team/server:1.2: invalid reference format: repository name (library/A) must be lowercase
spec.initContainers[0].image: Invalid value: "a:": must be an image reference such as registry.example.com/team/server:1.2: invalid reference format`},
	}, validate)
}

// TestTooManyContainers: they get one error, and are not validated.
func TestTooManyContainers(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{
		MaxContainers:     "spec.podTemplate.spec.initContainers[0].image: Required value",
		MaxContainers + 1: "spec.podTemplate.spec.containers: Too many: 129: must have at most 128 items",
	} {
		pods := web()
		pods.Template = raw(t, `{"spec":{"initContainers":[`+numbered(n, `{"name":"a%d"}`)+`]}}`)
		errs := pods.Validate(nil)
		if len(errs) == 0 || errs[0].Error() != want || n > MaxContainers && len(errs) > 1 {
			t.Errorf("%d containers: %v", n, errs)
		}
	}
}

func numbered(n int, format string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(items, ",")
}

// TestALargeTemplateIsBuilt: a bound that is newer than a stored object must not stop the
// controller from scaling and repairing its children.
func TestALargeTemplateIsBuilt(t *testing.T) {
	t.Parallel()
	for name, list := range map[string]string{
		"containers": `"containers":[` + numbered(200, `{"name":"a%d","image":"a:1"}`) + `]`,
		"volumes":    `"volumes":[` + numbered(700, `{"name":"a%d"}`) + `]`,
		"variables":  `"containers":[{"name":"a","env":[` + numbered(4000, `{"name":"a%d"}`) + `]}]`,
	} {
		pods := web()
		pods.Template = raw(t, `{"spec":{`+list+`}}`)
		if errs := pods.Validate(nil); len(errs) != 1 {
			t.Errorf("%s: the errors are %v, want one of a bound", name, errs)
		}
		if _, errs := pods.Effective(); len(errs) > 0 {
			t.Errorf("%s: not built because of %v", name, errs)
		}
	}
}

// Lists that are merged into the generated ones, by their key.
func TestKeysOfMergedLists(t *testing.T) {
	ruletest.Run(t, map[string]ruletest.Row{
		"none, or twice": {`
spec:
  containers: [{name: main, volumeMounts: [{name: a, mountPath: /a}, {name: a}, {name: b, mountPath: /a}]}, {image: a}, {name: b, image: b}, {name: main}]
  initContainers: [{name: c, image: c, volumeMounts: [{name: a, mountPath: /a}, {name: a, mountPath: /a}]}, {name: c}]
  volumes: [{}, {name: a}, {name: a}]`, `
spec.containers[0].volumeMounts[1].mountPath: Required value
spec.containers[0].volumeMounts[2].mountPath: Duplicate value: "/a"
spec.containers[1].name: Required value
spec.containers[3].name: Duplicate value: "main"
spec.initContainers[1].name: Duplicate value: "c"
spec.volumes[0].name: Required value
spec.volumes[2].name: Duplicate value: "a"`}, // Kubernetes validates the mounts of other containers.
	}, validate)
}
