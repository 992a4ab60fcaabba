// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/modelbox-operator/modelbox-operator/api"
	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/kinds/all"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
)

// serviceOf returns a Service for the pods of a Deployment.
func serviceOf(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 80}},
	}}
}

// asEditor makes the commands those of a user with the role edit in the namespace.
func (c *cluster) asEditor() {
	c.t.Helper()
	if err := bind(ctx, c.namespace, c.namespace, "edit"); err != nil {
		c.t.Fatal(err)
	}
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: c.namespace, Groups: []string{"system:authenticated"}}
	editor, err := client.NewWithWatch(config, client.Options{Scheme: env.Client.Scheme()})
	if err != nil {
		c.t.Fatal(err)
	}
	c.client = editor
}

// interrupted makes all writes fail after some of them.
func (c *cluster) interrupted(after int) {
	fails := func(opts ...string) error {
		if slices.Contains(opts, metav1.DryRunAll) {
			return nil
		}
		if after--; after < 0 {
			return errors.New("the connection is lost")
		}
		return nil
	}
	c.client = interceptor.NewClient(c.client, interceptor.Funcs{
		Create: func(ctx context.Context, next client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := fails((&client.CreateOptions{}).ApplyOptions(opts).DryRun...); err != nil {
				return err
			}
			return next.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, next client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := fails((&client.PatchOptions{}).ApplyOptions(opts).DryRun...); err != nil {
				return err
			}
			return next.Patch(ctx, obj, patch, opts...)
		},
	})
}

// running returns what may not change, as JSON, and who owns a field of the pod template.
func (c *cluster) running() (state string, owners []string) {
	c.t.Helper()
	d, s := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "web"}}, serviceOf("web")
	s.Namespace = c.namespace
	c.get(d)
	c.get(s)
	data, err := json.Marshal([]any{d.UID, d.Labels, d.Spec, s.UID, s.Spec})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, entry := range d.ManagedFields {
		if strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:image"`) {
			owners = append(owners, entry.Manager)
		}
	}
	return string(data), owners
}

const steps = `app/web created, with spec.paused
deployment/web is controlled by app/web, and its fields belong to the operator
service/web is controlled by app/web, and its fields belong to the operator
app/web resumed
`

// A user with the role edit hands over a Deployment and a Service. The command can be interrupted before
// each of its writes, and continues where it was.
func TestAdopt(t *testing.T) {
	for after := range 5 {
		c := newCluster(t)
		c.create(deploymentOf("web", nil, ""), serviceOf("web"))
		before, _ := c.running()
		c.asEditor()
		whole := c.client
		args := []string{"adopt", "deployment/web", "svc/web"}

		printed := c.run(args...)
		if printed.code != 0 || !strings.Contains(printed.out, "\n  selector:\n    app: web\n") {
			t.Fatalf("got %+v", printed)
		}
		if got := c.run(append(args, "--dry-run")...); got.code != 0 || got.out != strings.ReplaceAll(steps, "\n", " (dry run)\n") {
			t.Errorf("got %+v", got)
		}
		if err := c.client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: "web"}, &appv1.App{}); !apierrors.IsNotFound(err) {
			t.Errorf("printing it, or a dry run, has written the object: %v", err)
		}

		c.interrupted(after)
		first := c.run(append(args, "--apply")...)
		c.client = whole
		if after < 4 {
			if got := c.run(args...); first.code == 0 || !strings.Contains(first.err, "the connection is lost") || after > 0 && got.out != "app/web exists, and has not adopted everything yet: --apply continues\n" {
				t.Errorf("interrupted after %d: got %+v, then %+v", after, first, got)
			}
			app := &appv1.App{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "web"}}
			if c.client.Get(ctx, client.ObjectKeyFromObject(app), app) == nil && !app.Spec.Paused {
				t.Errorf("interrupted after %d: the operator writes already", after)
			}
			second := c.run(append(args, "--apply")...)
			first = result{first.out + second.out, second.err, second.code}
		}
		want(t, first, result{steps, "", 0})
		after, owners := c.running()
		if before != after || len(owners) > 0 {
			t.Errorf("the fields belong to %v; before and after:\n%s\n%s", owners, before, after)
		}
		want(t, c.run(args...), result{"app/web has adopted deployment/web and svc/web already (unchanged)\n", "", 0})

		app := &appv1.App{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "web"}}
		if c.get(app); app.Spec.Paused || app.Spec.Selector["app"] != "web" {
			t.Errorf("got %+v", app.Spec)
		}
		app.Spec.Selector["app"] = "other"
		if err := env.Client.Update(ctx, app); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.selector") {
			t.Errorf("a changed selector: %v", err)
		}
		app.Spec.Selector = nil
		if err := env.Client.Update(ctx, app); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.selector") {
			t.Errorf("a removed selector: %v", err)
		}
	}
}

// An autoscaler and a budget of the Deployment become blocks of the object. Whatever write fails, and although the
// autoscaler scales the Deployment then, the number of its pods stays the one that the autoscaler has set.
func TestAdoptBlocks(t *testing.T) {
	const taken = "app/web created, with spec.paused\nhorizontalpodautoscaler/web is controlled by app/web, and its fields belong to the operator\n" +
		"poddisruptionbudget/web is controlled by app/web, and its fields belong to the operator\n"
	for after := range 7 {
		c := newCluster(t)
		d := deploymentOf("web", nil, "")
		d.Spec.Replicas = new(int32(3))
		target := autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
		scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			MinReplicas: new(int32(2)), MaxReplicas: 5, ScaleTargetRef: target,
		}}
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, MinAvailable: new(intstr.FromInt32(1)),
		}}
		other := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: budget.Spec}
		c.create(d, serviceOf("web"), scaler, budget, other)
		c.asEditor()
		whole, args := c.client, []string{"adopt", "deployment/web", "svc/web", "--apply"}
		c.interrupted(after)
		first := c.run(args...)
		c.client = whole
		replicas := int32(3)
		if after < 6 {
			if err := env.Client.Get(ctx, client.ObjectKeyFromObject(scaler), scaler); err != nil {
				t.Fatal(err)
			}
			if c.get(d); scaler.Spec.ScaleTargetRef == target {
				replicas = 4
				d.Spec.Replicas = &replicas
				if err := env.Client.Update(ctx, d); err != nil {
					t.Fatal(err)
				}
			}
			second := c.run(args...)
			first = result{first.out + second.out, first.err, second.code}
		}
		want(t, result{first.out, "", first.code}, result{taken + strings.SplitAfterN(steps, "\n", 2)[1], "", 0})
		for _, line := range []string{"note: poddisruptionbudget/other stays as it is: that of an object has its name, web\n", "-  minAvailable: 1\n", "+    kind: App\n"} {
			if !strings.Contains(first.err, line) || strings.Contains(first.err, "conflict: ") {
				t.Errorf("%q is not in %s", line, first.err)
			}
		}
		app := &appv1.App{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "web"}}
		c.get(app)
		c.get(d)
		if *d.Spec.Replicas != replicas || *app.Spec.Replicas != replicas || app.Spec.Paused || app.Spec.Disruption.MinAvailable.IntVal != 1 || app.Spec.Autoscaling.MaxReplicas != 5 {
			t.Errorf("interrupted after %d: %d and %d replicas, %+v", after, *d.Spec.Replicas, *app.Spec.Replicas, app.Spec)
		}
		for _, child := range []client.Object{d, scaler, budget} {
			if c.get(child); !metav1.IsControlledBy(child, app) {
				t.Errorf("interrupted after %d: got %+v", after, child)
			}
		}
		if scaler.Spec.ScaleTargetRef.Kind != "App" || budget.Spec.MaxUnavailable.IntVal != replicas-1 || budget.Spec.MinAvailable != nil {
			t.Errorf("interrupted after %d: got %+v and %+v", after, scaler.Spec, budget.Spec)
		}
		if got := c.run(args...); got.out != "app/web has adopted deployment/web and svc/web already (unchanged)\n" {
			t.Errorf("got %+v", got)
		}
	}
}

// A Service of another name is taken over with its name, and the object that exists then has no other one.
func TestAdoptServiceOfAnotherName(t *testing.T) {
	for name, change := range map[string]func(*corev1.Service){
		"plain":           func(*corev1.Service) {},
		"headless":        func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone },
		"with node ports": func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort },
	} {
		c := newCluster(t)
		front, second := serviceOf("web"), serviceOf("web")
		front.Name, second.Name = "front", "second"
		change(front)
		c.create(deploymentOf("web", nil, ""), front, second)
		c.asEditor()
		if got := c.run("adopt", "deployment/web"); !strings.Contains(got.err, "note: service/front is not adopted: name it") || !strings.Contains(got.err, "note: service/second is not") {
			t.Errorf("%s: got %+v", name, got)
		}
		whole := c.client
		c.interrupted(2)
		first := c.run("adopt", "deployment/web", "service/front", "--apply")
		c.client = whole
		if got := c.run("adopt", "deployment/web", "service/second", "--apply"); got.code != 1 || !strings.Contains(got.err, `App "web" exists, and its Service is service/front, not "second"`) {
			t.Errorf("%s: got %+v", name, got)
		}
		rest := c.run("adopt", "deployment/web", "service/front", "--apply")
		want(t, result{first.out + rest.out, "", rest.code}, result{strings.ReplaceAll(steps, "service/web", "service/front"), "", 0})
		before := front.DeepCopy()
		app := &appv1.App{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "web"}}
		c.get(app)
		if c.get(front); app.ServiceName() != "front" || !metav1.IsControlledBy(front, app) || front.UID != before.UID || !reflect.DeepEqual(front.Spec, before.Spec) {
			t.Errorf("%s: got %+v, %+v", name, app.Spec, front)
		}
		if got := c.run("status", "app/web"); !strings.Contains(got.out, "Service/front") || strings.Contains(got.out, "Service/web") {
			t.Errorf("%s: got %+v", name, got)
		}
		c.stdin = `{apiVersion: app.huolala.cn/v1, kind: App, metadata: {name: forged}, spec: {image: "a:1", ports: [{port: 80}], service: {name: front}}}`
		if got := c.run("plan", "-f", "-"); !strings.Contains(got.out, `conflict: Service "front" already exists and is controlled by App/web`) {
			t.Errorf("%s: got %+v", name, got)
		}
		for _, spec := range []string{`{"service":null}`, `{"service":{"name":"second"}}`} {
			err := env.Client.Patch(ctx, app, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+spec+`}`)))
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.service.name") {
				t.Errorf("%s: %s: %v", name, spec, err)
			}
		}
	}
}

// What is said before anything is written, and what is refused with what to do.
func TestAdoptSays(t *testing.T) {
	c := newCluster(t)
	d := deploymentOf("web", nil, "")
	d.Spec.MinReadySeconds, d.Spec.RevisionHistoryLimit, d.Spec.Strategy.Type = 10, new(int32(2)), appsv1.RecreateDeploymentStrategyType // Each kind has them.
	d.Spec.Paused = true
	d.Annotations = map[string]string{"meta.helm.sh/release-name": "shop"}
	service := serviceOf("web")
	service.Spec.ClusterIP, service.Spec.PublishNotReadyAddresses = corev1.ClusterIPNone, true
	service.Annotations = map[string]string{"argocd.argoproj.io/tracking-id": "front:apps/Deployment:a/web"}
	other := deploymentOf("other", nil, "")
	other.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	other.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
	c.create(d, service, other, serviceOf("front"), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
	}})
	c.create(&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "scaler"}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		MaxReplicas: 3, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
	}})
	const notes = `note: horizontalpodautoscaler/scaler stays as it is: that of an object has its name, web
note: deployment/web: spec.paused stays true; the object does not have it, so a Deployment that is deleted is created again without it
note: service/web: spec.clusterIP stays "None"; the object does not have it, so a Service that is deleted is created again without it
`
	const conflicts = `conflict: HorizontalPodAutoscaler "scaler" acts on Deployment "web": let it act on the App of this name first, or delete it
conflict: Helm release "shop" manages Deployment "web" as well: take it out of its source first, without deleting it
conflict: Argo CD application "front" manages Service "web" as well: take it out of its source first, without deleting it
`
	want(t, c.run("adopt", "deploy/web", "service/web", "--apply"),
		result{"", conflicts + notes + "error: nothing was written: resolve the conflicts, or use --force\n", 1})

	// Nothing changes of a Deployment whose fields a ModelBox has.
	got := c.run("adopt", "deployments.apps/web", "--kind", "modelbox")
	if got.code != 0 || !strings.Contains(got.err, "note: service/web is not adopted") || strings.Contains(got.err, "the operator will change") {
		t.Errorf("got %+v", got)
	}
	// What is risky is said as by admission, and of claims, which admission does not read.
	got = c.run("adopt", "deployment/other", "--kind", "ModelBox")
	for _, line := range []string{"warning: spec.strategy: set {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}: a rollout needs a free nvidia.com/gpu\n",
		"warning: persistentvolumeclaim/data is ReadWriteOnce: in a rolling update, a pod on another node waits for the one before; set type: Recreate\n"} {
		if got.code != 0 || !strings.Contains(got.err, line) {
			t.Errorf("%q is not in %+v", line, got)
		}
	}
	for name, tc := range map[string]struct {
		args []string
		err  string
	}{
		"another Service":   {[]string{"deployment/web", "service/front"}, `service "front" selects app=front, and Deployment "web" app=web`},
		"an absent one":     {[]string{"deployment/none"}, `deployments.apps "none" not found`},
		"an absent Service": {[]string{"deployment/other", "service/other"}, `services "other" not found`},
	} {
		if got := c.run(append([]string{"adopt"}, tc.args...)...); got.code != 1 || got.out != "" || !strings.Contains(got.err, tc.err) {
			t.Errorf("%s: got %+v", name, got)
		}
	}

	// The object of another owner, and one that would change the pods.
	box := newBox()
	c.create(box)
	if got := c.run("adopt", "deployment/web", "--kind", "ModelBox"); got.code != 1 || !strings.Contains(got.err, `ModelBox "web" exists: change it, or delete it with --cascade=orphan`) {
		t.Errorf("got %+v", got)
	}
	if got := c.run("adopt", "deployment/web"); !strings.Contains(got.err, `conflict: ModelBox "web" acts on Deployment "web"`) {
		t.Errorf("got %+v", got)
	}
	c.get(d)
	control(d, box, "ModelBox")
	if err := c.client.Update(ctx, d); err != nil {
		t.Fatal(err)
	}
	if got := c.run("adopt", "deployment/web"); got.code != 1 || !strings.Contains(got.err, `Deployment "web" is controlled by ModelBox "web" already`) {
		t.Errorf("got %+v", got)
	}
}

// What a mutating webhook, or an API server of another version, would make of the operator's apply is seen
// before anything is written.
func TestAdoptAsksTheAPIServer(t *testing.T) {
	c := newCluster(t)
	c.create(deploymentOf("web", nil, ""))
	c.client = interceptor.NewClient(c.client, interceptor.Funcs{
		Patch: func(ctx context.Context, next client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			err := next.Patch(ctx, obj, patch, opts...)
			if d, ok := obj.(*appsv1.Deployment); ok {
				d.Spec.Template.Spec.Containers[0].Image = "rewritten:1"
			}
			return err
		},
	})
	got := c.run("adopt", "deployment/web", "--apply")
	if got.code != 1 || !strings.Contains(got.err, "the API server would change what runs, so nothing was written") || !strings.Contains(got.err, "+      - image: rewritten:1") {
		t.Errorf("got %+v", got)
	}
	if err := c.client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: "web"}, &appv1.App{}); !apierrors.IsNotFound(err) {
		t.Errorf("something was written: %v", err)
	}
}

// Other field managers keep the fields that the object does not have, and the time of a restart.
func TestAdoptLeavesOthersTheirFields(t *testing.T) {
	c := newCluster(t)
	const manifest = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {a: b}}, spec: {selector: {matchLabels: {app: web}}, template: {
		metadata: {labels: {app: web}, annotations: {kubectl.kubernetes.io/restartedAt: "2026-01-01T00:00:00Z"}}, spec: {containers: [{name: web, image: "a:1"}]}}}}`
	if _, err := env.Kubectl(manifest, "apply", "--server-side", "--field-manager=ci", "-n", c.namespace, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if got := c.run("adopt", "deployment/web", "--kind", "ModelBox", "--apply"); got.code != 0 {
		t.Fatalf("got %+v", got)
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "web"}}
	c.get(d)
	at := slices.IndexFunc(d.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == "ci" })
	const fields = `{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:template":{"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/restartedAt":{}}}}}}`
	if at < 0 || string(d.ManagedFields[at].FieldsV1.GetRawBytes()) != fields {
		t.Errorf("got %v", d.ManagedFields)
	}
	box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "web"}}
	if c.get(box); box.Spec.DefaultProbes != modelv1.DefaultProbesDisabled || metav1.GetControllerOf(d).UID != box.UID {
		t.Errorf("got %+v", box.Spec)
	}
	if slices.ContainsFunc(d.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == api.FieldManager }) {
		t.Errorf("the operator has fields before it has applied any: %v", d.ManagedFields)
	}
}

// restored creates an object and its children, as a backup brings them back: the children without owner references.
func (c *cluster) restored(owner client.Object) (children []client.Object) {
	c.t.Helper()
	kind := all.Kinds[slices.IndexFunc(all.Kinds, func(k *all.Kind) bool { return reflect.TypeOf(k.New()) == reflect.TypeOf(owner) })]
	kind.SetDefaults(owner, nil)
	desired, err := kind.Workload(owner, models.Fetcher{Image: "r.io/fetch:old", Mirrors: []string{"hf://=https://hub.example.com"}}).Children()
	if err != nil {
		c.t.Fatal(err)
	}
	c.create(owner)
	for _, child := range desired {
		child.SetOwnerReferences(nil)
		child.SetNamespace(c.namespace)
		if err := c.client.Create(ctx, child, client.FieldOwner("backup")); err != nil {
			c.t.Fatal(err)
		}
		children = append(children, child)
	}
	return children
}

// A user with the role edit gives restored objects their children, which stay as they are. The command can be
// interrupted, and continues where it was.
func TestAdoptRestored(t *testing.T) {
	for _, tc := range []struct {
		name, note string
		owner      client.Object
		kinds      []string
	}{
		{"modelbox/web", "note: the image r.io/fetch:old fetches the model: if the controller has another one now, or other mirrors, it replaces the pods\n",
			&modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: modelv1.ModelBoxSpec{
				Image: "a:1", Replicas: new(int32(2)), Ports: []modelv1.Port{{Port: 80}}, ModelFileURL: "hf://org/name@0123456789abcdef0123456789abcdef01234567",
				Children: modelv1.Children{Disruption: &modelv1.Disruption{MaxUnavailable: new(intstr.FromInt32(1))}, Autoscaling: &modelv1.Autoscaling{MaxReplicas: 3}},
			}}, []string{"deployment", "service", "poddisruptionbudget", "horizontalpodautoscaler"}},
		{"app/web", "", &appv1.App{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appv1.AppSpec{Image: "a:1", Paused: true}}, []string{"deployment"}},
		{"genericdaemon/web", "", &mydomainv1beta1.Genericdaemon{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: mydomainv1beta1.GenericdaemonSpec{Image: "a:1"}}, []string{"daemonset"}},
	} {
		c := newCluster(t)
		children := c.restored(tc.owner)
		c.asEditor()
		var steps string
		for _, kind := range tc.kinds {
			steps += kind + "/web is controlled by " + tc.name + ", and its fields belong to the operator\n"
		}
		want(t, c.run("adopt", "--restored", tc.name), result{strings.ReplaceAll(steps, "\n", " (dry run)\n"), tc.note, 0})
		whole := c.client
		c.interrupted(1)
		first := c.run("adopt", "--restored", tc.name, "--apply")
		c.client = whole
		if len(children) > 1 {
			second := c.run("adopt", "--restored", tc.name, "--apply")
			first = result{first.out + second.out, "", second.code}
		}
		want(t, result{first.out, "", first.code}, result{steps, "", 0})
		want(t, c.run("adopt", "--restored", tc.name, "--apply"), result{tc.name + " has adopted each of its children already (unchanged)\n", "", 0})
		c.get(tc.owner)
		if app, ok := tc.owner.(*appv1.App); ok && !app.Spec.Paused {
			t.Error("a paused object was resumed")
		}
		for _, child := range children {
			before := child.DeepCopyObject().(client.Object)
			if c.get(child); child.GetUID() != before.GetUID() || child.GetGeneration() != before.GetGeneration() || !metav1.IsControlledBy(child, tc.owner) {
				t.Errorf("%s: got %+v", tc.name, child)
			}
		}
	}
}

// What is not surely the object's stays as it is, and a rollout does not begin unseen.
func TestAdoptRestoredSays(t *testing.T) {
	c := newCluster(t)
	box := newBox()
	box.Spec.Ports = []modelv1.Port{{Port: 80}}
	box.Spec.Disruption = &modelv1.Disruption{MaxUnavailable: new(intstr.FromInt32(1))}
	children := c.restored(box)
	deployment, service, budget := children[0].(*appsv1.Deployment), children[1], children[2]
	deployment.Spec.Template.Spec.Containers[0].Image = "nginx:1"
	deployment.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "OLD", Value: "kept"}}
	service.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "b", Controller: new(true)}})
	budget.SetLabels(nil)
	for _, child := range children {
		if err := c.client.Update(ctx, child); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"adopt", "--restored", "modelbox/web"}
	got := c.run(append(args, "--apply")...)
	for _, line := range []string{
		`conflict: Deployment "web" has another pod template than this object makes: the operator would replace the pods` + "\n", "\n-        image: nginx:1\n+        image: nginx:2\n",
		"note: this stays in the pod template, because the operator removes only what it has set itself:\n", "\n-    - env:\n-      - name: OLD\n",
		`conflict: Service "web" is controlled by ConfigMap "a" (uid b) already` + "\n",
		`conflict: PodDisruptionBudget "web" does not have the label app.kubernetes.io/managed-by=modelbox-operator`, "error: nothing was written",
	} {
		if got.code != 1 || got.out != "" || !strings.Contains(got.err, line) {
			t.Errorf("%q is not in %+v", line, got)
		}
	}
	if got := c.run(append(args, "--apply", "--force")...); got.code != 0 || got.out != "deployment/web is controlled by modelbox/web, and its fields belong to the operator\n" {
		t.Errorf("got %+v", got)
	}
	for i, child := range children {
		if c.get(child); metav1.IsControlledBy(child, box) != (i == 0) {
			t.Errorf("got %+v", child)
		}
	}
	for args, text := range map[string]string{"eru/web": "eru/web has no children", "web": "names no object", "app/none": `"none" not found`} {
		if got := c.run("adopt", "--restored", args); got.code == 0 || !strings.Contains(got.err, text) {
			t.Errorf("%s: got %+v", args, got)
		}
	}
}
