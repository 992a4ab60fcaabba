// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	gocmp "cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/modelbox-operator/modelbox-operator/cli/adopt"
	"github.com/modelbox-operator/modelbox-operator/cli/command"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
)

// running is a Deployment, each in a namespace of its own, with what is beside it there. want is what it
// becomes, or words of the refusal, and after a bar the risks.
type running struct {
	change func(d *appsv1.Deployment, c *corev1.Container)
	beside []client.Object
	want   string
}

func serviceNamed(name string, change func(s *corev1.ServiceSpec)) client.Object {
	s := &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}}
	s.Name, s.Spec = name, corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}}
	if change != nil {
		change(&s.Spec)
	}
	return s
}

func claimOf(modes ...corev1.PersistentVolumeAccessMode) []client.Object {
	claim := &corev1.PersistentVolumeClaim{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}}
	claim.Name, claim.Spec.AccessModes = "data", modes
	return []client.Object{claim}
}

func mounts(change func(d *appsv1.Deployment)) func(*appsv1.Deployment, *corev1.Container) {
	return func(d *appsv1.Deployment, c *corev1.Container) {
		d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		if change != nil {
			change(d)
		}
	}
}

func devices(n string, change func(d *appsv1.Deployment)) func(*appsv1.Deployment, *corev1.Container) {
	return func(d *appsv1.Deployment, c *corev1.Container) {
		c.Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(n)}
		if change != nil {
			change(d)
		}
	}
}

func strategy(surge, unavailable int32) appsv1.DeploymentStrategy {
	return appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
		MaxSurge: new(intstr.FromInt32(surge)), MaxUnavailable: new(intstr.FromInt32(unavailable)),
	}}
}

func recreate(d *appsv1.Deployment) { d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType }

func liveness(failures int32, change func(c *corev1.Container)) func(*appsv1.Deployment, *corev1.Container) {
	return func(_ *appsv1.Deployment, c *corev1.Container) {
		c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}, FailureThreshold: failures}
		if change != nil {
			change(c)
		}
	}
}

func image(text string) func(*appsv1.Deployment, *corev1.Container) {
	return func(_ *appsv1.Deployment, c *corev1.Container) { c.Image = text }
}

func owner(apiVersion, kind string) func(*appsv1.Deployment, *corev1.Container) {
	return func(d *appsv1.Deployment, _ *corev1.Container) {
		d.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "web", UID: "1", Controller: new(true)}}
	}
}

var corpus = map[string]running{
	"plain":                  {nil, nil, "App |"},
	"service":                {nil, []client.Object{serviceNamed("web", nil)}, "App+Service |"},
	"service-headless":       {nil, []client.Object{serviceNamed("web", func(s *corev1.ServiceSpec) { s.ClusterIP = "None" })}, "App+Service |"},
	"service-load-balancer":  {nil, []client.Object{serviceNamed("web", func(s *corev1.ServiceSpec) { s.Type = "LoadBalancer" })}, "ModelBox+Service |"},
	"service-other-name":     {nil, []client.Object{serviceNamed("front", nil)}, "App+Service |"},
	"service-other-balancer": {nil, []client.Object{serviceNamed("front", func(s *corev1.ServiceSpec) { s.Type = "LoadBalancer" })}, "ModelBox+Service |"},
	"service-one-of-two":     {nil, []client.Object{serviceNamed("front", nil), serviceNamed("web", func(s *corev1.ServiceSpec) { s.Selector["tier"] = "front" })}, "App+Service | Service web"},
	"service-no-name":        {nil, []client.Object{serviceNamed("1a", nil)}, "App | Service 1a"},
	"service-both":           {nil, []client.Object{serviceNamed("web", nil), serviceNamed("b", nil), serviceNamed("a", nil)}, "App+Service | Service a, Service b"},
	"service-other-selector": {nil, []client.Object{serviceNamed("web", func(s *corev1.ServiceSpec) { s.Selector["tier"] = "front" })}, "App | Service web"},
	"service-other-pods":     {nil, []client.Object{serviceNamed("front", func(s *corev1.ServiceSpec) { s.Selector["app"] = "x" })}, "App |"},
	"service-no-selector":    {nil, []client.Object{serviceNamed("front", func(s *corev1.ServiceSpec) { s.Selector = nil })}, "App |"},
	"service-no-ports":       {nil, []client.Object{serviceNamed("web", func(s *corev1.ServiceSpec) { s.Ports, s.ClusterIP = nil, "None" })}, "App | Service web"},
	"service-long-port":      {nil, []client.Object{serviceNamed("web", func(s *corev1.ServiceSpec) { s.Ports[0].Name = "a-very-long-name-of-a-port" })}, "App | Service web"},
	"image-latest":           {image("a:latest"), nil, "App | Image web"},
	"image-no-tag":           {image("a.example.com:5000/a"), nil, "App | Image web"},
	"image-init": {func(d *appsv1.Deployment, _ *corev1.Container) {
		d.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "b"}}
	}, nil, "App | Image init"},
	"requests-none": {func(_ *appsv1.Deployment, c *corev1.Container) { c.Resources = corev1.ResourceRequirements{} }, nil, "App | Requests web"},
	"requests-limits": {func(_ *appsv1.Deployment, c *corev1.Container) {
		c.Resources.Limits, c.Resources.Requests = c.Resources.Requests, nil
	}, nil, "App |"},
	"device-default":       {devices("1", nil), nil, "App | Rollout web"},
	"device-recreate":      {devices("1", recreate), nil, "App |"},
	"device-in-place":      {devices("1", func(d *appsv1.Deployment) { d.Spec.Strategy = strategy(0, 1) }), nil, "App |"},
	"device-four":          {devices("1", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(4)) }), nil, "App |"},
	"device-none":          {devices("1", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) }), nil, "App |"},
	"device-several":       {devices("2", recreate), nil, "App | SharedMemory web"},
	"device-shared-memory": {devices("2", sharedMemory), nil, "App |"},
	"probe-quick":          {liveness(3, nil), nil, "App | LivenessProbe web"},
	"probe-startup":        {liveness(3, func(c *corev1.Container) { c.StartupProbe = c.LivenessProbe }), nil, "App |"},
	"claim-default":        {mounts(nil), claimOf("ReadWriteOnce"), "App | PersistentVolumeClaim data"},
	"claim-recreate":       {mounts(recreate), claimOf("ReadWriteOnce"), "App |"},
	"claim-in-place":       {mounts(func(d *appsv1.Deployment) { d.Spec.Strategy = strategy(0, 1) }), claimOf("ReadWriteOnce"), "App |"},
	"claim-two-pods":       {mounts(func(d *appsv1.Deployment) { d.Spec.Replicas, d.Spec.Strategy = new(int32(2)), strategy(0, 1) }), claimOf("ReadWriteOnce"), "App | PersistentVolumeClaim data"},
	"claim-many":           {mounts(nil), claimOf("ReadWriteOnce", "ReadWriteMany"), "App |"},
	"claim-unknown":        {mounts(nil), nil, "App |"},
	"vllm":                 {image("vllm/vllm-openai:v1"), []client.Object{serviceNamed("vllm", func(s *corev1.ServiceSpec) { s.Selector = nil })}, "App | ServiceLinks vllm"},
	"vllm-no-links": {func(d *appsv1.Deployment, c *corev1.Container) {
		c.Image, d.Spec.Template.Spec.EnableServiceLinks = "vllm/vllm-openai:v1", new(bool)
	}, []client.Object{serviceNamed("vllm", func(s *corev1.ServiceSpec) { s.Selector = nil })}, "App |"},
	"vllm-another-server": {nil, []client.Object{serviceNamed("vllm", func(s *corev1.ServiceSpec) { s.Selector = nil })}, "App |"},
	"all": {func(d *appsv1.Deployment, c *corev1.Container) {
		devices("2", nil)(d, c)
		liveness(3, nil)(d, c)
		image("a")(d, c)
	}, []client.Object{serviceNamed("adopted", nil), serviceNamed("front", nil)}, "App+Service | Image web, Rollout web, SharedMemory web, LivenessProbe web, Service front"},
	"refused-expressions": {func(d *appsv1.Deployment, _ *corev1.Container) {
		d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Exists"}}
	}, nil, "is not only of labels |"},
	"refused-deletion": {func(d *appsv1.Deployment, _ *corev1.Container) {
		d.DeletionTimestamp, d.Finalizers = &metav1.Time{Time: now}, []string{"a.b/c"}
	}, nil, "is being deleted |"},
	"refused-owner":    {owner("example.com/v1", "Site"), nil, `is controlled by Site "web" already |`},
	"refused-variable": {func(_ *appsv1.Deployment, c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "A"}, {Name: "A"}} }, nil, "spec.envs[1].name: Duplicate value |"},
	"refused-name":     {func(d *appsv1.Deployment, _ *corev1.Container) { d.Name = "web.v1" }, nil, "metadata.name: Invalid value |"},
	"controlled":       {owner("app.huolala.cn/v1", "App"), nil, ""},
}

func sharedMemory(d *appsv1.Deployment) {
	recreate(d)
	d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "shm", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "Memory"}}}}
	d.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "shm", MountPath: "/dev/shm"}}
}

// objects returns the Deployment and what is beside it, in a namespace.
func (r running) objects(namespace string) []client.Object {
	d := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}}
	d.Name, d.Spec.Selector = "web", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	d.Spec.Template.Labels = map[string]string{"app": "web", "tier": "front"}
	d.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "web", Image: "a:1", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}},
	}}
	if r.change != nil {
		r.change(d, &d.Spec.Template.Spec.Containers[0])
	}
	out := []client.Object{d}
	for _, beside := range r.beside {
		out = append(out, beside.DeepCopyObject().(client.Object))
	}
	for _, object := range out {
		object.SetNamespace(namespace)
	}
	return out
}

func runIn(c client.WithWatch, stdin string, args ...string) result {
	var out, errOut bytes.Buffer
	code := command.Run(command.Env{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errOut}, Client: c}, args)
	return result{out.String(), errOut.String(), code}
}

// inPages answers all lists by pages of two, and expects that they are asked for.
func inPages(t *testing.T, c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		o := (&client.ListOptions{}).ApplyOptions(opts)
		if o.Limit == 0 {
			t.Errorf("%T is not listed by pages", list)
		}
		if err := c.List(ctx, list, client.InNamespace(o.Namespace)); err != nil {
			return err
		}
		page := list.(*unstructured.UnstructuredList)
		from, _ := strconv.Atoi(o.Continue) // It is 0 at the beginning.
		if page.SetContinue(""); from+2 < len(page.Items) {
			page.SetContinue(strconv.Itoa(from + 2))
		}
		page.Items = page.Items[from:min(from+2, len(page.Items))]
		return nil
	}})
}

// The report is the same of a cluster and of its manifests, and each row is what adopt does.
func TestAdoptReport(t *testing.T) {
	t.Parallel()
	var stored []client.Object
	var manifests strings.Builder
	for namespace, r := range corpus {
		for _, object := range r.objects(namespace) {
			text, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&manifests, "---\n%s\n", text)
			render.SetDefaults(object)
			stored = append(stored, object)
		}
	}
	c := cluster(t, stored...)
	got, offline := runIn(inPages(t, c), "", "adopt", "--report", "-A", "-o", "json"), runIn(nil, manifests.String(), "adopt", "--report", "-f", "-", "-o", "json")
	if diff := cmp.Diff(got, offline, cmp.AllowUnexported(result{})); diff != "" || got.code != 0 || got.err != "" {
		t.Fatalf("%d %s (-cluster +manifests):\n%s", got.code, got.err, diff)
	}
	var report adopt.Report
	if err := json.Unmarshal([]byte(got.out), &report); err != nil || report.Controlled != 1 || len(report.Deployments) != len(corpus)-1 {
		t.Fatalf("%v, %d controlled, %d rows", err, report.Controlled, len(report.Deployments))
	}
	for _, row := range report.Deployments {
		var risks []string
		for _, risk := range row.Risks {
			risks = append(risks, risk.Type+" "+risk.Name)
		}
		becomes, want, _ := strings.Cut(corpus[row.Namespace].want, " |")
		said := row.Becomes + map[bool]string{true: "+Service"}[row.WithService]
		if row.Becomes != "" && said != becomes || !strings.Contains(said+row.Refused, becomes) || strings.Join(risks, ", ") != strings.TrimPrefix(want, " ") {
			t.Errorf("%s: got %s %s: %v", row.Namespace, said, row.Refused, row.Risks)
		}
		args := []string{"adopt", "deployment/" + row.Name, "-n", row.Namespace, "--kind", gocmp.Or(row.Becomes, "App")}
		if row.WithService {
			args = append(args, "service/"+row.Service)
		}
		if done := runIn(c, "", args...); (done.code == 0) != (row.Becomes != "") || row.Refused != "" && done.err != "error: "+row.Refused+"\n" {
			t.Errorf("%s: adopt differs: %+v, and %+v", row.Namespace, done, row)
		}
	}
}

// The table has no columns for kinds that may not be listed.
func TestAdoptReportTable(t *testing.T) {
	t.Parallel()
	objects := corpus["all"].objects("shop")
	for _, object := range objects {
		render.SetDefaults(object)
	}
	forbidden := interceptor.NewClient(cluster(t, objects...), interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if kind := list.GetObjectKind().GroupVersionKind().Kind; kind != "DeploymentList" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: strings.TrimSuffix(kind, "List")}, "", nil)
		}
		return c.List(ctx, list, opts...)
	}})
	const summary = "1 Deployment: 1 can be adopted, 0 cannot; left out: 0 that objects of the five kinds control\n"
	for name, tc := range map[string]struct {
		c    client.WithWatch
		want result
	}{
		"all": {cluster(t, objects...), result{`NAMESPACE   NAME   BECOMES   RISKS                                      PERSISTENTVOLUMECLAIM   SERVICE   WHY NOT
shop        web    App       Image,Rollout,SharedMemory,LivenessProbe   -                       front     -
`, summary, 0}},
		"forbidden": {forbidden, result{`NAMESPACE   NAME   BECOMES   RISKS                                      WHY NOT
shop        web    App       Image,Rollout,SharedMemory,LivenessProbe   -
`, "not considered: Service is forbidden: <nil>\nnot considered: PersistentVolumeClaim is forbidden: <nil>\n" + summary, 0}},
	} {
		if diff := cmp.Diff(tc.want, runIn(tc.c, "", "adopt", "--report", "-n", "shop"), cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What is not a report's is an error of usage; what cannot be read in a manifest is said.
func TestAdoptReportOfManifests(t *testing.T) {
	t.Parallel()
	const future = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {ofTheFuture: 1, template: {spec: {}}}}`
	for name, tc := range map[string]struct {
		stdin string
		args  []string
		words string
		code  int
	}{
		"a name as well":      {"", []string{"--report", "deployment/web"}, "is for a namespace", 3},
		"a write as well":     {"", []string{"--report", "--apply"}, "writes nothing", 3},
		"files without it":    {"", []string{"deployment/web", "-f", "-"}, "belong to --report", 3},
		"nothing":             {"", nil, "or use --report", 3},
		"no object":           {"a: b", []string{"--report", "-f", "-"}, "nothing was read", 3},
		"another format":      {future, []string{"--report", "-f", "-", "-o", "text2"}, "unknown output format", 3},
		"what is not YAML":    {future + "\n---\na: {{ b }}: c", []string{"--report", "-f", "-"}, "not considered: <stdin>:3", 0},
		"a field of tomorrow": {future, []string{"--report", "-f", "-", "-o", "yaml"}, "what this release of modelbox does not know", 0},
		"no container":        {strings.Replace(future, "ofTheFuture: 1, ", "selector: {matchLabels: {a: b}}, ", 1), []string{"--report", "-f", "-"}, "has no container", 0},
		"no Deployment":       {`{apiVersion: v1, kind: Service, metadata: {name: a}}`, []string{"--report", "-f", "-"}, "0 Deployments: 0 can be adopted", 0},
	} {
		if got := runIn(nil, tc.stdin, append([]string{"adopt"}, tc.args...)...); got.code != tc.code || !strings.Contains(got.out+got.err, tc.words) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
