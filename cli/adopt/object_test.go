// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsv1defaults "k8s.io/kubernetes/pkg/apis/apps/v1"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/cli/adopt"
	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/test/filled"
)

var appKind = kinds.Of(schema.GroupKind{Group: "app.huolala.cn", Kind: "App"})

// filler gives random values, valid or not. No two texts are the same, so that no two items of a
// list have the same keys; a type whose values decide which defaults there are has those that
// decide it.
func filler(seed int64, empty float64) *randfill.Filler {
	return filled.Filler(seed).MaxDepth(20).NilChance(empty).NumElements(1, 2).Funcs(
		func(s *string, c randfill.Continue) { *s = fmt.Sprintf("a%d", c.Int31()) },
		func(p *corev1.PullPolicy, c randfill.Continue) {
			*p = pick(c, corev1.PullAlways, corev1.PullNever, corev1.PullIfNotPresent, "")
		},
		func(p *corev1.Protocol, c randfill.Continue) {
			*p = pick(c, corev1.ProtocolTCP, corev1.ProtocolUDP, "")
		},
		func(p *corev1.DNSPolicy, c randfill.Continue) {
			*p = pick(c, corev1.DNSClusterFirst, corev1.DNSDefault, "")
		},
		func(p *corev1.RestartPolicy, _ randfill.Continue) { *p = corev1.RestartPolicyAlways },
		func(s *corev1.URIScheme, c randfill.Continue) {
			*s = pick(c, corev1.URISchemeHTTP, corev1.URISchemeHTTPS, "")
		},
		func(p *corev1.TerminationMessagePolicy, c randfill.Continue) {
			*p = pick(c, corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError, "")
		},
		func(v *corev1.ImageVolumeSource, c randfill.Continue) {
			*v = corev1.ImageVolumeSource{Reference: pick(c, "a:1", "a"), PullPolicy: pick(c, corev1.PullAlways, corev1.PullIfNotPresent)}
		},
		func(owners *[]metav1.OwnerReference, _ randfill.Continue) { *owners = nil },
		func(entries *[]metav1.ManagedFieldsEntry, _ randfill.Continue) { *entries = nil },
		func(v *corev1.VolumeSource, c randfill.Continue) {
			members := reflect.ValueOf(v).Elem()
			member := members.Field(c.Intn(members.NumField()))
			member.Set(reflect.New(member.Type().Elem()))
			c.Fill(member.Interface())
		},
	)
}

func pick[T any](c randfill.Continue, values ...T) T { return values[c.Intn(len(values))] }

// random returns a Deployment as an API server could store it if it did not validate: with its
// defaults, and without what its internal type does not keep.
func random(t *testing.T, seed int64) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}}
	filler(seed, []float64{0.97, 0.8, 0.5, 0.2}[seed%4]).Fill(&d.Spec)
	template, labels := &d.Spec.Template, map[string]string{"app": "web", "a.b/c": ""}
	if d.Spec.Strategy = (appsv1.DeploymentStrategy{}); seed%3 == 0 {
		d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	}
	d.Spec.Replicas, d.Spec.Selector = new(int32(seed%5)), &metav1.LabelSelector{MatchLabels: labels}
	template.Labels = map[string]string{"app": "web", "a.b/c": "", "version": "1"}
	if seed%2 == 0 {
		template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z", "a": "b"}
	}
	if len(template.Spec.Containers) == 0 {
		template.Spec.Containers = make([]corev1.Container, 1+seed%3)
	}
	for i := range template.Spec.Containers { // Their names are unique among four.
		c := &template.Spec.Containers[i]
		c.Image = []string{"nginx:1.29", "nginx", "registry.example.com/a/b:latest"}[(seed+int64(i))%3]
		c.Name = []string{"nginx", "web", "side", "b"}[(int(seed)/3+i)%4]
	}
	for i := range template.Spec.InitContainers {
		template.Spec.InitContainers[i].Image = "busybox:1"
	}
	return stored(t, d)
}

func stored(t *testing.T, d *appsv1.Deployment) *appsv1.Deployment {
	t.Helper()
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	sent := &appsv1.Deployment{}
	if err := json.Unmarshal(data, sent); err != nil {
		t.Fatal(err)
	}
	appsv1defaults.SetObjectDefaults_Deployment(sent)
	internal, external := &core.PodTemplateSpec{}, corev1.PodTemplateSpec{}
	if err := corev1defaults.Convert_v1_PodTemplateSpec_To_core_PodTemplateSpec(&sent.Spec.Template, internal, nil); err != nil {
		t.Fatal(err)
	}
	if err := corev1defaults.Convert_core_PodTemplateSpec_To_v1_PodTemplateSpec(internal, &external, nil); err != nil {
		t.Fatal(err)
	}
	sent.Spec.Template = external
	return sent
}

// built returns what the operator builds for the object of a Deployment and a Service, admitted or
// not.
func built(kind *kinds.Kind, d *appsv1.Deployment, s *corev1.Service) (children []client.Object, object *unstructured.Unstructured, err error) {
	object, err = adopt.Object(kind, d, s)
	if err != nil {
		return nil, nil, err
	}
	obj := kind.New()
	if err := create.Into(object, obj); err != nil {
		return nil, object, err
	}
	kind.SetDefaults(obj, nil)
	children, err = kind.Children(obj, models.Fetcher{})
	return children, object, err
}

// admitted returns the error with which admission refuses an object.
func admitted(kind *kinds.Kind, object *unstructured.Unstructured) error {
	resp := create.Dry(kind, create.Request{Object: object, Namespace: "default"})
	return resp.Err()
}

// For each field that a Deployment can have, the operator builds for the printed object what runs,
// byte for byte, or says why it can build nothing.
func TestRandomDeployments(t *testing.T) {
	t.Parallel()
	const rounds = 500
	for _, kind := range []*kinds.Kind{appKind, kinds.ModelBox()} {
		same, allowed, set := 0, 0, map[string]bool{}
		for seed := range int64(rounds) {
			d := random(t, seed)
			children, object, err := built(kind, d, nil)
			if err != nil {
				t.Logf("seed %d: %.300s", seed, err)
				continue
			}
			same++
			note(set, "", reflect.ValueOf(d.Spec.Template))
			if diff, err := adopt.Differences(children, []client.Object{d}); err != nil || diff != "" {
				t.Fatalf("seed %d: %v:\n%s\nthe object:\n%v", seed, err, diff, object)
			}
			if seed%4 == 0 && admitted(kind, object) == nil {
				allowed++
			}
		}
		for path := range fieldsOf("", reflect.TypeFor[corev1.PodTemplateSpec](), 5) {
			if !set[path] {
				t.Errorf("%s: no Deployment has %s", kind.GVK.Kind, path)
			}
		}
		if t.Logf("%s: %d of %d are built, and %d admitted", kind.GVK.Kind, same, rounds, allowed); same < rounds/2 || allowed < rounds/50 {
			t.Errorf("%s: %d of %d are built, and %d admitted: too few", kind.GVK.Kind, same, rounds, allowed)
		}
	}
}

// note adds the paths of the fields of a value that are set.
func note(paths map[string]bool, path string, value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			note(paths, path, value.Elem())
		}
	case reflect.Slice:
		for i := range value.Len() {
			note(paths, path, value.Index(i))
		}
	case reflect.Struct:
		for i := range value.NumField() {
			if f := value.Type().Field(i); f.IsExported() && !value.Field(i).IsZero() {
				paths[path+"."+f.Name] = true
				note(paths, path+"."+f.Name, value.Field(i))
			}
		}
	}
}

// fieldsOf iterates over the paths of the fields of a type of package core, to a depth.
func fieldsOf(path string, of reflect.Type, depth int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || depth == 0 || of.PkgPath() != "k8s.io/api/core/v1" {
			return
		}
		for f := range of.Fields() {
			if f.IsExported() && yield(path+"."+f.Name) {
				fieldsOf(path+"."+f.Name, f.Type, depth-1)(yield)
			}
		}
	}
}

const web = `
metadata: {name: web, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {kubectl.kubernetes.io/restartedAt: "2026-01-01T00:00:00Z"}}
    spec:
      terminationGracePeriodSeconds: 60
      imagePullSecrets: [{name: pull}]
      containers:
      - {name: proxy, image: "envoy:1"}
      - name: web
        image: nginx:1.29
        args: [-q]
        ports: [{name: http, containerPort: 8080}, {name: metrics, containerPort: 9090}]
        env: [{name: B, value: b}, {name: A, value: $(B)}]
        resources: {limits: {cpu: 500m}}
        readinessProbe: {httpGet: {path: /, port: http}}
`

const webService = `
metadata: {name: web, namespace: default}
spec: {selector: {app: web}, type: NodePort, ports: [{name: web, port: 80, targetPort: http, nodePort: 30080, protocol: TCP}]}
`

func deployment(t *testing.T, text string) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := yaml.UnmarshalStrict([]byte(text), d); err != nil {
		t.Fatal(err)
	}
	return stored(t, d)
}

func service(t *testing.T, text string) *corev1.Service {
	t.Helper()
	s := &corev1.Service{}
	if err := yaml.UnmarshalStrict([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	corev1defaults.SetObjectDefaults_Service(s)
	return s
}

// A reader knows the Deployment in the object again: fields are where they belong, and defaults are
// not there.
func TestObject(t *testing.T) {
	t.Parallel()
	for kind, want := range map[*kinds.Kind]string{
		appKind: `apiVersion: app.huolala.cn/v1
kind: App
metadata: {name: web, namespace: default}
spec:
  args: [-q]
  envs: [{name: B, value: b}, {name: A, value: $(B)}]
  image: nginx:1.29
  imagePullSecrets: [{name: pull}]
  podTemplate:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: proxy, image: "envoy:1"}
      - {name: web, ports: [{name: http, containerPort: 8080}, {name: metrics, containerPort: 9090}], readinessProbe: {httpGet: {port: http}}}
      terminationGracePeriodSeconds: 60
  ports: [{name: web, nodePort: 30080, port: 80, targetPort: http}]
  replicas: 3
  resources: {limits: {cpu: 500m}}
  selector: {app: web}
`,
		kinds.ModelBox(): `apiVersion: model.github.com/v1
kind: ModelBox
metadata: {name: web, namespace: default}
spec:
  args: [-q]
  defaultProbes: Disabled
  envs: [{name: B, value: b}, {name: A, value: $(B)}]
  image: nginx:1.29
  imagePullSecrets: [{name: pull}]
  minReadySeconds: 0
  podTemplate:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: proxy, image: "envoy:1"}
      - {name: web, ports: [{name: http, containerPort: 8080}, {name: metrics, containerPort: 9090}]}
  ports: [{name: web, nodePort: 30080, port: 80, targetPort: http}]
  progressDeadlineSeconds: 600
  readinessProbe: {httpGet: {port: http}}
  replicas: 3
  resourceType: custom
  resources: {limits: {cpu: 500m}}
  selector: {app: web}
  serviceType: NodePort
  terminationGracePeriodSeconds: 60
`,
	} {
		d, s := deployment(t, web), service(t, webService)
		children, object, err := built(kind, d, s)
		if err == nil {
			err = admitted(kind, object)
		}
		if err != nil {
			t.Fatal(err)
		}
		var wanted map[string]any
		if err := yaml.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatal(err)
		}
		got, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := yaml.Marshal(wanted); err != nil || string(text) != string(got) {
			t.Errorf("%v: got\n%s", err, got)
		}
		if diff, err := adopt.Differences(children, []client.Object{d, s}); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	}
}

// Each refusal says what to do. The report of adoption has those of a Deployment.
func TestRefused(t *testing.T) {
	t.Parallel()
	const box = "ModelBox"
	for name, tc := range map[string]struct {
		kind           string
		change         func(d *appsv1.Deployment, s *corev1.Service)
		reason, wayOut string
	}{
		"a Service in deletion": {"App", func(_ *appsv1.Deployment, s *corev1.Service) { s.DeletionTimestamp = &metav1.Time{} }, "being deleted", ""},
		"another selector": {"App", func(_ *appsv1.Deployment, s *corev1.Service) { s.Spec.Selector["b"] = "c" },
			`selects app=web,b=c, and Deployment "web" app=web`, "adopt the Deployment alone"},
		"no ports":        {"App", func(_ *appsv1.Deployment, s *corev1.Service) { s.Spec.Ports = nil }, "no ports", "adopt the Deployment alone"},
		"a load balancer": {"App", func(_ *appsv1.Deployment, s *corev1.Service) { s.Spec.Type = "LoadBalancer" }, "LoadBalancer", "--kind ModelBox"},
		"a long name of a port": {box, func(_ *appsv1.Deployment, s *corev1.Service) { s.Spec.Ports[0].Name = "a-very-long-name-of-a-port" },
			"spec.ports[0].name", "1 to 15"},
		"another version of pods": {"App", func(d *appsv1.Deployment, _ *corev1.Service) { d.Spec.Template.Labels["app"] = "x" },
			"spec.podTemplate.metadata.labels[app]", `must be "web"`},
	} {
		d, s := deployment(t, web), service(t, webService)
		tc.change(d, s)
		kind, err := kinds.Find(tc.kind)
		if err != nil {
			t.Fatal(err)
		}
		_, object, err := built(kind, d, s)
		if err == nil {
			err = admitted(kind, object)
		}
		if err == nil || !strings.Contains(err.Error(), tc.reason) || !strings.Contains(err.Error(), tc.wayOut) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// What may not change is different if it changes.
func TestDifferences(t *testing.T) {
	t.Parallel()
	live := []client.Object{deployment(t, web), service(t, webService)}
	for name, change := range map[string]func(d *appsv1.Deployment, s *corev1.Service){
		"image:":      func(d *appsv1.Deployment, _ *corev1.Service) { d.Spec.Template.Spec.Containers[0].Image = "b:1" },
		"replicas:":   func(d *appsv1.Deployment, _ *corev1.Service) { d.Spec.Replicas = new(int32(4)) },
		"b: c":        func(d *appsv1.Deployment, _ *corev1.Service) { d.Spec.Template.Labels["b"] = "c" },
		"name: proxy": func(d *appsv1.Deployment, _ *corev1.Service) { slices.Reverse(d.Spec.Template.Spec.Containers) },
		"securityContext": func(d *appsv1.Deployment, _ *corev1.Service) {
			d.Spec.Template.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{}
		},
		"nodePort:":          func(_ *appsv1.Deployment, s *corev1.Service) { s.Spec.Ports[0].NodePort = 0 },
		"app: x":             func(_ *appsv1.Deployment, s *corev1.Service) { s.Spec.Selector["app"] = "x" },
		"type: LoadBalancer": func(_ *appsv1.Deployment, s *corev1.Service) { s.Spec.Type = "LoadBalancer" },
	} {
		d, s := live[0].DeepCopyObject().(*appsv1.Deployment), live[1].DeepCopyObject().(*corev1.Service)
		change(d, s)
		if diff, err := adopt.Differences([]client.Object{d, s}, live); err != nil || !strings.Contains(diff, name) {
			t.Errorf("%s: %v: %s", name, err, diff)
		}
	}
}
