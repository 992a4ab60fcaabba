// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

func deployment(change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.Name, d.Namespace = "box", "default"
	d.Labels = map[string]string{"a": "b"}
	d.Spec.Replicas = new(int32(2))
	d.Spec.Template.Spec.Containers = []corev1.Container{{
		Name:  "main",
		Image: "server:1",
		Args:  []string{"--a", "--b"},
		Env:   []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
		Ports: []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP}},
		Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		},
	}}
	d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
	for _, c := range change {
		c(d)
	}
	return d
}

func main0(d *appsv1.Deployment) *corev1.Container {
	containers := d.Spec.Template.Spec.Containers
	for i := range containers {
		if containers[i].Name == "main" {
			return &containers[i]
		}
	}
	panic("no main container")
}

func TestDifferencesNameTheField(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(live *appsv1.Deployment)
		want   string
	}{
		{"nothing", func(*appsv1.Deployment) {}, ""},
		{"status is not compared", func(d *appsv1.Deployment) { d.Status.Replicas = 7 }, ""},
		{"a label of another manager", func(d *appsv1.Deployment) { d.Labels["x"] = "y" }, ""},
		{"an annotation of another manager", func(d *appsv1.Deployment) { d.Annotations = map[string]string{"x": "y"} }, ""},
		{"a default of the server", func(d *appsv1.Deployment) { d.Spec.Template.Spec.RestartPolicy = "Always" }, ""},
		{"a member more in an item of an atomic list", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Tolerations[0].TolerationSeconds = new(int64(5))
		}, "spec.template.spec.tolerations[0].tolerationSeconds"},
		{"an injected sidecar, last", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "side"})
		}, ""},
		{"an injected sidecar, first", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers = append([]corev1.Container{{Name: "side"}}, d.Spec.Template.Spec.Containers...)
		}, ""},
		{"an injected variable", func(d *appsv1.Deployment) {
			main0(d).Env = append([]corev1.EnvVar{{Name: "Z"}}, main0(d).Env...)
		}, ""},
		{"an equal quantity in another form", func(d *appsv1.Deployment) {
			main0(d).Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1000m")
		}, ""},
		{"replicas", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) }, "spec.replicas"},
		{"replicas gone", func(d *appsv1.Deployment) { d.Spec.Replicas = nil }, "spec.replicas"},
		{"our label", func(d *appsv1.Deployment) { d.Labels = map[string]string{"x": "y"} }, "metadata.labels.a"},
		{"all labels", func(d *appsv1.Deployment) { d.Labels = nil }, "metadata.labels"},
		{"the image", func(d *appsv1.Deployment) { main0(d).Image = "server:2" }, "spec.template.spec.containers[name=main].image"},
		{"the main container", func(d *appsv1.Deployment) { main0(d).Name = "other" }, "spec.template.spec.containers[name=main]"},
		{"a variable's value", func(d *appsv1.Deployment) { main0(d).Env[1].Value = "3" }, "spec.template.spec.containers[name=main].env[name=B].value"},
		{"a variable", func(d *appsv1.Deployment) { main0(d).Env = main0(d).Env[:1] }, "spec.template.spec.containers[name=main].env[name=B]"},
		{"an argument more", func(d *appsv1.Deployment) { main0(d).Args = append(main0(d).Args, "--c") }, "spec.template.spec.containers[name=main].args"},
		{"an argument", func(d *appsv1.Deployment) { main0(d).Args[1] = "--c" }, "spec.template.spec.containers[name=main].args[1]"},
		{"a quantity", func(d *appsv1.Deployment) {
			main0(d).Resources.Limits[corev1.ResourceCPU] = resource.MustParse("2")
		}, "spec.template.spec.containers[name=main].resources.limits.cpu"},
		{"a toleration more", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Tolerations = append(d.Spec.Template.Spec.Tolerations, corev1.Toleration{})
		}, "spec.template.spec.tolerations"},
		{"a port's protocol", func(d *appsv1.Deployment) { main0(d).Ports[0].Protocol = corev1.ProtocolUDP },
			"spec.template.spec.containers[name=main].ports[containerPort=80,protocol=TCP]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := firstDifference(deployment(), deployment(test.change)); got != test.want {
				t.Errorf("the first difference is %q, want %q", got, test.want)
			}
		})
	}
}

// A nil pointer without omitempty becomes a null, where the server has a default.
func TestDifferencesTakeNullAsUnset(t *testing.T) {
	probe := func(service *string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			main0(d).StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1, Service: service}}}
		}
	}
	if got := firstDifference(deployment(probe(nil)), deployment(probe(new("")))); got != "" {
		t.Errorf("the first difference is %q, want no difference", got)
	}
}

// A container port without a protocol matches the one that the API server defaulted.
func TestDifferencesMatchAKeyThatTheServerDefaults(t *testing.T) {
	desired := deployment(func(d *appsv1.Deployment) { main0(d).Ports[0].Protocol = "" })
	if got := firstDifference(desired, deployment()); got != "" {
		t.Errorf("the first difference is %q, want no difference", got)
	}
}

func TestDifferencesLeaveWhatTheClusterChoseForAService(t *testing.T) {
	desired := service()
	live := service()
	live.Spec.ClusterIP = "10.0.0.1"
	live.Spec.Ports[0].NodePort = 31000
	live.Spec.SessionAffinity = corev1.ServiceAffinityNone
	if got := firstDifference(desired, live); got != "" {
		t.Errorf("the first difference is %q, want no difference", got)
	}
	live.Spec.Ports[0].TargetPort = intstr.FromInt32(81)
	if got := firstDifference(desired, live); got != "spec.ports[port=80,protocol=TCP].targetPort" {
		t.Errorf("the first difference is %q, want the target port", got)
	}
}

// firstDifference returns the path of the first difference, "" if there is none.
func firstDifference(desired, live client.Object) string {
	for _, d := range differences(desired, live) {
		return d.field
	}
	return ""
}

// What admission rewrites is in the status of the owner: another order of the same fields would be another status, and
// each status that is written causes the next reconcile.
func TestDifferencesHaveAnOrder(t *testing.T) {
	t.Parallel()
	desired, live := deployment(), deployment()
	for i := range 20 {
		desired.Labels[fmt.Sprint("label-", i)], live.Labels[fmt.Sprint("label-", i)] = "x", "y"
	}
	fields := func() (all []string) {
		for _, d := range differences(desired, live) {
			all = append(all, d.field)
		}
		return all
	}
	want := fields()
	for range 10 {
		if got := fields(); !slices.Equal(got, want) || len(got) != 20 {
			t.Fatalf("%v, and before %v", got, want)
		}
	}
}

// The items of a list are found by their keys at a cost that does not grow with the square of their number.
func TestLongListsAreComparedQuickly(t *testing.T) {
	t.Parallel()
	desired, live := deployment(), deployment()
	for i := range 50_000 {
		variable := corev1.EnvVar{Name: fmt.Sprint("VARIABLE_", i), Value: "x"}
		main0(desired).Env, main0(live).Env = append(main0(desired).Env, variable), append(main0(live).Env, variable)
	}
	main0(live).Env = append([]corev1.EnvVar{{Name: "INJECTED"}}, main0(live).Env...)
	start := time.Now()
	if got := firstDifference(desired, live); got != "" {
		t.Errorf("the first difference is %q", got)
	}
	if took := time.Since(start); took > 30*time.Second { // The square takes minutes.
		t.Errorf("it took %s", took)
	}
}

// Of a kind that has no Go type here, a map is granular and a list atomic.
func TestDifferencesOfAnUntypedObject(t *testing.T) {
	t.Parallel()
	object := func(spec string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"kind": "HTTPRoute", "metadata": map[string]any{"labels": map[string]any{"a": "b"}}}}
		if err := yaml.Unmarshal([]byte(spec), &obj.Object); err != nil {
			t.Fatal(err)
		}
		return obj
	}
	const desired = `spec: {hosts: [a, b], weight: 1, parent: {name: gateway}}`
	for live, want := range map[string]string{
		desired: "",
		`{spec: {hosts: [a, b], weight: 1.0, parent: {name: gateway, added: 1}, other: {}}, status: {}}`: "",
		`metadata: {}`: "metadata.labels",
		`spec: {hosts: [a], weight: 1, parent: {name: gateway}}`:       "spec.hosts",
		`spec: {hosts: [a, b], weight: 2, parent: {name: g}}`:          "spec.parent.name",
		`spec: {hosts: [a, b], weight: 2, parent: {}}`:                 "spec.parent",
		`spec: {hosts: [a, b], weight: null, parent: {name: gateway}}`: "spec.weight",
	} {
		if got := firstDifference(object(desired), object(live)); got != want {
			t.Errorf("%s: the first difference is %q, want %q", live, got, want)
		}
	}
}

func service() *corev1.Service {
	s := &corev1.Service{}
	s.Name, s.Namespace = "box", "default"
	s.Spec.Type = corev1.ServiceTypeNodePort
	s.Spec.Ports = []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(80)}}
	return s
}

func TestHashDependsOnTheObjectOnly(t *testing.T) {
	hash := func(obj client.Object) string {
		t.Helper()
		if err := setHash(obj); err != nil {
			t.Fatal(err)
		}
		return obj.GetAnnotations()[AnnotationHash]
	}
	manyKeys := func() client.Object { // Maps with many keys, whose order is random.
		return deployment(func(d *appsv1.Deployment) {
			d.Labels, main0(d).Resources.Limits = map[string]string{}, corev1.ResourceList{}
			for i := range 20 {
				d.Labels[fmt.Sprint("label-", i)] = "x"
				main0(d).Resources.Limits[corev1.ResourceName(fmt.Sprint("resource-", i))] = resource.MustParse("1")
			}
		})
	}
	for range 20 {
		if one, other := hash(manyKeys()), hash(manyKeys()); one != other {
			t.Fatalf("one object has two hashes, %s and %s", one, other)
		}
	}
	first, again := hash(deployment()), hash(deployment())
	other := hash(deployment(func(d *appsv1.Deployment) { main0(d).LivenessProbe = &corev1.Probe{} }))
	if first != again {
		t.Errorf("one object has two hashes, %s and %s", first, again)
	}
	if first == other {
		t.Errorf("two objects have one hash, %s", first)
	}
}
