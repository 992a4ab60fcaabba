// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	gocmp "cmp"
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/api"
	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/command"
	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/manifest"
	"github.com/modelbox-operator/modelbox-operator/cli/plan"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
	domain "github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/sizes"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// cluster is a cluster with some objects. It answers dry runs as an API server does that has the
// webhook, with the sizes of the ConfigMap: with the defaults of an object, and of children.
func cluster(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme, err := testenv.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	stored := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects(objects...).Build()
	return interceptor.NewClient(stored, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if options := (&client.CreateOptions{}).ApplyOptions(opts); len(options.DryRun) == 0 {
				return c.Create(ctx, obj, opts...)
			}
			return admit(ctx, c, obj, nil)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			options := (&client.PatchOptions{}).ApplyOptions(opts)
			if len(options.DryRun) == 0 {
				return c.Patch(ctx, obj, patch, opts...)
			}
			old := domain.NewOf(obj)
			if err := c.Get(ctx, client.ObjectKeyFromObject(obj), old); err != nil {
				return err
			}
			options.DryRun = nil
			if err := cluster(t, old).Patch(ctx, obj, patch, options); err != nil {
				return err
			}
			return admit(ctx, c, obj, old)
		},
	})
}

func admit(ctx context.Context, c client.Client, obj, old client.Object) error {
	object, ok := obj.(*unstructured.Unstructured)
	if !ok {
		render.SetDefaults(obj)
		return nil
	}
	req := create.Request{Object: object, Namespace: obj.GetNamespace()}
	if old != nil {
		req.Old = old.(*unstructured.Unstructured)
	}
	of := &corev1.ConfigMap{}
	if c.Get(ctx, client.ObjectKey{Namespace: "modelbox-system", Name: "modelbox-sizes"}, of) == nil {
		req.Sizes, _ = sizes.Parse([]byte(of.Data["sizes.yaml"]))
	}
	answer, status := create.Dry(kinds.Of(object.GroupVersionKind().GroupKind()), req), object.Object["status"]
	if answer.Object != nil {
		object.Object = answer.Object.Object
	}
	if status != nil {
		object.Object["status"] = status
	}
	return answer.Err()
}

// applied returns what is stored after an apply of a manifest to an empty cluster: what its plan
// says.
func applied(t *testing.T, text string) (out []client.Object) {
	t.Helper()
	planner := plan.Planner{Client: cluster(t), Namespace: "default", Apply: plan.Apply{Manager: plan.ClientSideManager}}
	found, err := planner.Plan(context.Background(), manifest.Parse("manifest", []byte(text)))
	if err != nil {
		t.Fatal(err)
	}
	last, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	stored := found.Objects[0].Stored
	stored.SetUID("00000000-0000-0000-0000-000000000000")
	stored.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: string(last)})
	server := cluster(t)
	for _, child := range found.Objects[0].Children { // As the controller creates them.
		child.SetResourceVersion("")
		if err := server.Create(t.Context(), child, client.FieldOwner(api.FieldManager)); err != nil {
			t.Fatal(err)
		}
		out = append(out, child)
	}
	return append(out, stored)
}

// planOf returns the sentences of a plan, and whether there are differences.
func planOf(c client.WithWatch, text string, flags ...string) (out string, different bool) {
	var stdout, stderr bytes.Buffer
	code := command.Run(command.Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(text), Out: &stdout, ErrOut: &stderr}, Program: "modelbox", Client: c, Clock: testclock.NewFakeClock(now),
	}, append([]string{"plan", "-f", "-", "-n", "default"}, flags...))
	out, _, _ = strings.Cut(stdout.String()+stderr.String(), "\n\n")
	return strings.TrimSuffix(out, "\n"), code == 1
}

func object(t *testing.T, text string) client.Object {
	t.Helper()
	out := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &out.Object); err != nil {
		t.Fatal(err)
	}
	out.SetNamespace("default")
	return out
}

const (
	web = `{apiVersion: model.github.com/v1, kind: ModelBox, metadata: {name: web}, spec: {image: "a:1", replicas: 4, resourceType: custom,
resources: {limits: {cpu: "1", nvidia.com/gpu: "1"}}, strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}, envs: [{name: A, value: b}]}}`
	small    = `{apiVersion: model.github.com/v1, kind: ModelBox, metadata: {name: web}, spec: {image: "a:1", resourceType: small}}`
	template = `{apiVersion: model.github.com/v1, kind: ModelBox, metadata: {name: web}, spec: {image: "a:1", podTemplate: {metadata: {annotations: {a.b/c: d}}}}}`
	app      = `{apiVersion: app.huolala.cn/v1, kind: App, metadata: {name: shop}, spec: {image: "a:1", replicas: 1}}`
	onChange = `{apiVersion: app.huolala.cn/v1, kind: App, metadata: {name: shop}, spec: {image: "a:1", restartOnChange: Referenced}}`
	mounted  = `{apiVersion: app.huolala.cn/v1, kind: App, metadata: {name: shop}, spec: {image: "a:1", podTemplate: {spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}}}}`
	daemon   = `{apiVersion: mydomain.com/v1beta1, kind: Genericdaemon, metadata: {name: agent}, spec: {image: "a:1"}}`
	held     = `{apiVersion: extension.k8s.io/v1, kind: UnitedDeployment, metadata: {name: held}, spec: {deploymentName: other, replicas: 3}}`
	eru      = `{apiVersion: mtsre.meitu.com/v1, kind: Eru, metadata: {name: nightly}, spec: {deploymentName: other}}`
	scaler   = `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: s}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: x/v1, kind: KIND, name: web}}}`
)

func TestPlan(t *testing.T) {
	t.Parallel()
	const noRestart, same = "modelbox/web: restarts no pod\nmodelbox/web: ", "modelbox/web: no difference\nmodelbox/web: conflict: "
	other := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))}}
	foreign := other.DeepCopy()
	foreign.Name = "web"
	claim := claimOf(corev1.ReadWriteOnce)[0]
	claim.SetNamespace("default")
	frozen := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Annotations: map[string]string{api.AnnotationFrozen: "sale"}}}
	scaling := func(kind string) client.Object { return object(t, strings.Replace(scaler, "KIND", kind, 1)) }
	for name, tc := range map[string]struct {
		before   string
		with     []client.Object
		from, to string // Of the manifest.
		want     string
	}{
		"created": {want: "modelbox/web: is created\nmodelbox/web: scales from 0 to 4 pods; the new pods request 4 nvidia.com/gpu"},
		"nothing": {before: web, want: "modelbox/web: no difference"},
		"the image": {before: web, from: "a:1", to: "a:2",
			want: "modelbox/web: restarts 4 pods, one after another: change of spec.image; needs 1 spare pod with 1 nvidia.com/gpu during the rollout"},
		"three fields, of which one is no cause": {before: web, from: `value: b}]`, to: `value: c}], sharedMemory: 1Gi, progressDeadlineSeconds: 4000`,
			want: "modelbox/web: restarts 4 pods, one after another: change of spec.envs, spec.sharedMemory; needs 1 spare pod with 1 nvidia.com/gpu during the rollout"},
		"replicas":       {before: web, from: "replicas: 4", to: "replicas: 5", want: noRestart + "scales from 4 to 5 pods; the new pods request 1 nvidia.com/gpu"},
		"fewer replicas": {before: web, from: "replicas: 4", to: "replicas: 1", want: noRestart + "scales from 4 to 1 pod"},
		"image and replicas": {before: web, from: `a:1", replicas: 4`, to: `a:2", replicas: 8`,
			want: "modelbox/web: restarts 4 pods, one after another: change of spec.image; needs 1 spare pod with 1 nvidia.com/gpu during the rollout\n" +
				"modelbox/web: scales from 4 to 8 pods; the new pods request 4 nvidia.com/gpu"},
		"larger steps": {before: web, from: "maxSurge: 1, maxUnavailable: 0}}, envs: [{name: A, value: b}]", to: "maxSurge: 50%, maxUnavailable: 1}}",
			want: "modelbox/web: restarts 4 pods, at most 3 at a time: change of spec.envs; needs 2 spare pods with 2 nvidia.com/gpu during the rollout"},
		"Recreate": {before: web, from: "{rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}, envs: [{name: A, value: b}]", to: "{type: Recreate}",
			want: "modelbox/web: restarts 4 pods, all at the same time: change of spec.envs"},
		"a preset, which others are derived from": {before: small, from: "small", to: "large",
			want: "modelbox/web: restarts 1 pod: change of spec.resourceType; needs 1 spare pod during the rollout"},
		"a field of podTemplate": {before: template, from: "d}", to: "e}",
			want: "modelbox/web: restarts 1 pod: change of spec.podTemplate.metadata.annotations[a.b/c]; needs 1 spare pod during the rollout"},
		"a claim": {before: mounted, with: []client.Object{claim}, from: "a:1", to: "a:2", want: "app/shop: restarts 1 pod: change of spec.image; needs 1 spare pod during the rollout\n" +
			"app/shop: note: persistentvolumeclaim/data is ReadWriteOnce: in a rolling update, a pod on another node waits for the one before; set type: Recreate"},
		"a claim, and no restart":   {before: mounted, with: []client.Object{claim}, want: "app/shop: no difference"},
		"a claim that is not there": {before: mounted, from: "a:1", to: "a:2", want: "app/shop: restarts 1 pod: change of spec.image; needs 1 spare pod during the rollout"},
		"of an App":                 {before: app, from: "a:1", to: "a:2", want: "app/shop: restarts 1 pod: change of spec.image; needs 1 spare pod during the rollout"},
		"of a Genericdaemon":        {before: daemon, from: "a:1", to: "a:2", want: "genericdaemon/agent: restarts 0 pods: change of spec.image"},
		"paused":                    {before: web, from: "a:1\"", to: "a:2\", paused: true", want: noRestart + "note: spec.paused is true: changes are not written"},
		"another owner of the name": {with: []client.Object{foreign},
			want: "modelbox/web: is created\nmodelbox/web: conflict: Deployment \"web\" already exists and has no controller: it is not changed; delete or rename it, or give this object another name"},
		"an autoscaler of the object": {before: web, with: []client.Object{scaling("ModelBox")},
			want: same + "HorizontalPodAutoscaler \"s\" scales this ModelBox, and the manifest sets spec.replicas, so each apply undoes the scaling: remove the field"},
		"an autoscaler without replicas in the manifest": {before: small, with: []client.Object{scaling("ModelBox")}, want: "modelbox/web: no difference"},
		"an autoscaler of the Deployment": {before: small, with: []client.Object{scaling("Deployment")},
			want: same + "HorizontalPodAutoscaler \"s\" sets the replicas of Deployment \"web\" as well: use only one of them"},
		"an autoscaler in the manifests": {before: small, from: "", to: strings.Replace(scaler, "KIND", "Deployment", 1) + "\n---\n",
			want: same + "HorizontalPodAutoscaler \"s\" sets the replicas of Deployment \"web\" as well: use only one of them"},
		"KEDA": {before: small, with: []client.Object{object(t, "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: k}, spec: {scaleTargetRef: {name: web}}}")},
			want: same + "ScaledObject \"k\" sets the replicas of Deployment \"web\" as well: use only one of them"},
		"a UnitedDeployment": {before: small, with: []client.Object{object(t, strings.Replace(held, "other", "web", 1))},
			want: same + "UnitedDeployment \"held\" sets the replicas of Deployment \"web\" as well: use only one of them"},
		"an Eru, which is none": {before: small, with: []client.Object{object(t, strings.Replace(eru, "other", "web", 1))}, want: "modelbox/web: no difference"},
		"UnitedDeployment": {before: held, with: []client.Object{other}, from: "3", to: "4",
			want: "uniteddeployment/held: restarts no pod\nuniteddeployment/held: scales from 1 to 4 pods"},
		"UnitedDeployment without a target": {before: held, from: "3", to: "4",
			want: "uniteddeployment/held: restarts no pod\nuniteddeployment/held: note: there is no Deployment \"other\" in this namespace"},
		"two UnitedDeployments": {before: held, with: []client.Object{other, object(t, strings.Replace(held, "held", "second", 1))}, from: "3", to: "4",
			want: "uniteddeployment/held: restarts no pod\nuniteddeployment/held: conflict: UnitedDeployment \"second\" sets the replicas of Deployment \"other\" as well: use only one of them"},
		"configuration without a reference": {before: onChange, want: "app/shop: no difference"},
		"schedules": {from: `image: "a:1", replicas: 4`, to: `image: "a:1", schedules: [{name: a, schedule: "* * * * *", replicas: 6}]`,
			want: "modelbox/web: is created\nmodelbox/web: scales from 0 to 6 pods; the new pods request 6 nvidia.com/gpu"},
		"schedules in a frozen namespace": {with: []client.Object{frozen}, from: `image: "a:1", replicas: 4`, to: `image: "a:1", schedules: [{name: a, schedule: "* * * * *", replicas: 6}]`,
			want: "modelbox/web: is created\nmodelbox/web: scales from 0 to 1 pod; the new pods request 1 nvidia.com/gpu"},
		"an image in a frozen namespace": {before: app, with: []client.Object{frozen}, from: "a:1", to: "a:2",
			want: "app/shop: restarts 1 pod: change of spec.image; needs 1 spare pod during the rollout\n" +
				"app/shop: note: namespace default is frozen (sale): the API server refuses a change of the pods by users that may not override it"},
		"an image that waits for a window": {before: app, from: `a:1"`, to: `a:2", holdChanges: All, windows: [{schedule: "0 2 * * *", duration: 1h}]`,
			want: "app/shop: restarts 1 pod when the next window opens, at 2026-03-28T02:00:00Z: change of spec.image; needs 1 spare pod during the rollout"},
		"an image whose rollout starts now": {before: app, from: `shop}, spec: {image: "a:1"`,
			to:   `shop, annotations: {modelbox-operator.github.io/rollout-now: "0"}}, spec: {image: "a:2", holdChanges: All, windows: [{schedule: "0 2 * * *", duration: 1h}]`,
			want: "app/shop: restarts 1 pod: change of spec.image; needs 1 spare pod during the rollout"},
		"two Erus": {before: eru, with: []client.Object{object(t, strings.Replace(eru, "nightly", "second", 1))},
			want: "eru/nightly: no difference\neru/nightly: conflict: Eru \"second\" restarts Deployment \"other\" as well"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := web
			var stored []client.Object
			if tc.before != "" {
				text, stored = tc.before, applied(t, tc.before)
			}
			if tc.from != "" && !strings.Contains(text, tc.from) {
				t.Fatalf("%q is not in the manifest", tc.from)
			}
			for _, obj := range tc.with {
				stored = append(stored, obj.DeepCopyObject().(client.Object))
			}
			got, different := planOf(cluster(t, stored...), strings.Replace(text, tc.from, tc.to, 1))
			if diff := cmp.Diff(tc.want, got); diff != "" || different == strings.Contains(tc.want, "no difference") {
				t.Errorf("differences: %t (-want +got):\n%s", different, diff)
			}
		})
	}
}

// returned is what is stored of a manifest and its children, if the rollout of the manifest has failed, and
// the last complete one was that of another manifest.
func returned(t *testing.T, last, failed string) []client.Object {
	t.Helper()
	hashed := func(obj client.Object) (data []byte, hash string) {
		owner := kinds.Of(obj.GetObjectKind().GroupVersionKind().GroupKind()).New()
		if err := create.Into(obj.(*unstructured.Unstructured), owner); err != nil {
			t.Fatal(err)
		}
		spec := any(nil)
		switch o := owner.(type) {
		case *modelv1.ModelBox:
			spec = &o.Spec
		case *appv1.App:
			spec = &o.Spec
		}
		data, hash, err := workload.RolledOut(spec)
		if err != nil {
			t.Fatal(err)
		}
		return data, hash
	}
	out, now := applied(t, last), applied(t, failed)
	data, complete := hashed(out[len(out)-1])
	object := now[len(now)-1].(*unstructured.Unstructured)
	_, present := hashed(object)
	object.Object["status"] = map[string]any{"rollout": map[string]any{"complete": complete, "present": present, "failed": "no pod can start"}}
	out[len(out)-1] = object
	return append(out, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: workload.RecordName(object.GetName(), complete)}, Data: runtime.RawExtension{Raw: data},
	})
}

// An object whose rollout has failed is planned with what its children are made of, until its spec changes.
func TestPlanOfAFailedRollout(t *testing.T) {
	t.Parallel()
	const (
		good  = `{apiVersion: app.huolala.cn/v1, kind: App, metadata: {name: shop}, spec: {image: "a:1", replicas: 1, onFailedRollout: Return}}`
		model = `{apiVersion: model.github.com/v1, kind: ModelBox, metadata: {name: web}, spec: {image: "a:1", model: {uri: "https://example.com/a"}, onFailedRollout: Return}}`
		note  = "note: the rollout of this spec has failed (no pod can start), so the pods stay those of the last complete one: change the spec to roll out again"
		again = "; needs 1 spare pod during the rollout"
	)
	failed := strings.Replace(good, "a:1", "bad:1", 1)
	for name, tc := range map[string]struct {
		last, failed string
		from, to     string // Of the manifest.
		change       func(*appsv1.ControllerRevision)
		want         string
	}{
		"nothing":                  {want: "no difference\n" + note},
		"replicas":                 {from: "replicas: 1", to: "replicas: 3", want: "restarts no pod\nscales from 1 to 3 pods\n" + note},
		"another spec":             {from: "bad:1", to: "a:2", want: "restarts 1 pod: change of spec.image" + again},
		"the spec of the last one": {from: "bad:1", to: "a:1", want: "restarts no pod"},
		"another deadline":         {from: "replicas", to: "progressDeadlineSeconds: 300, replicas", want: "restarts 1 pod: change of spec.progressDeadlineSeconds" + again},
		"without the field":        {from: ", onFailedRollout: Return", want: "restarts 1 pod: change of spec.onFailedRollout" + again},
		"a model":                  {last: model, failed: strings.Replace(model, "/a", "/b", 1), want: "no difference\n" + note},
		"a forged record": {change: func(r *appsv1.ControllerRevision) { r.Data.Raw = []byte(`{"image":"x:1"}`) },
			want: "no difference\n" + note + "\nnote: its children are not compared: ControllerRevision \"NAME\" has not the content that status.rollout.complete says"},
		"no record": {change: func(r *appsv1.ControllerRevision) { r.Name = "other" },
			want: "no difference\n" + note + "\nnote: its children are not compared: reading the record of the last complete rollout: controllerrevisions.apps \"NAME\" not found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifest := gocmp.Or(tc.failed, failed)
			stored := returned(t, gocmp.Or(tc.last, good), manifest)
			record := stored[len(stored)-1].(*appsv1.ControllerRevision)
			want := strings.ReplaceAll(tc.want, "NAME", record.Name)
			if tc.change != nil {
				tc.change(record)
			}
			if !strings.Contains(manifest, tc.from) {
				t.Fatalf("%q is not in the manifest", tc.from)
			}
			got, different := planOf(cluster(t, stored...), strings.Replace(manifest, tc.from, tc.to, 1))
			got = strings.NewReplacer("app/shop: ", "", "modelbox/web: ", "").Replace(got)
			if diff := cmp.Diff(want, got); diff != "" || different == strings.Contains(want, "no difference") {
				t.Errorf("differences: %t (-want +got):\n%s", different, diff)
			}
		})
	}
}

// Manifests without an object of the operator are told from those without a difference.
func TestPlanOfNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"} {
		if out, different := planOf(cluster(t), text); out != "No objects of the five kinds in the manifests." || different {
			t.Errorf("%q: %q, different %t", text, out, different)
		}
	}
}

// With the sizes of the cluster, their values are in the plan.
func TestPlanOfASize(t *testing.T) {
	t.Parallel()
	const gpu = "sizes: {gpu: {resources: {limits: {cpu: 1, nvidia.com/gpu: 2}}}}"
	text := strings.Replace(small, "small", "gpu", 1)
	want := "modelbox/web: is created\nmodelbox/web: scales from 0 to 1 pod; the new pods request 2 nvidia.com/gpu"
	of := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "modelbox-system", Name: "modelbox-sizes"}, Data: map[string]string{"sizes.yaml": gpu}}
	if got, _ := planOf(cluster(t, of), text); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, _ := planOf(cluster(t, of), strings.Replace(text, "gpu", "none", 1)); !strings.Contains(got, `Unsupported value: "none"`) {
		t.Errorf("another size: %s", got)
	}
	if got, _ := planOf(cluster(t), text); !strings.Contains(got, "admission has not set the values of this size") {
		t.Errorf("without the sizes: %s", got)
	}
}

// What a running Deployment fetches its model with stays: no flag is needed to see no difference.
func TestPlanKeepsTheFetcher(t *testing.T) {
	t.Parallel()
	const model = `{apiVersion: model.github.com/v1, kind: ModelBox, metadata: {name: web}, spec: {image: "a:1", modelFileURL: "hf://org/name@0123456789abcdef0123456789abcdef01234567"}}`
	stored := applied(t, model)
	fetch := &stored[0].(*appsv1.Deployment).Spec.Template.Spec.InitContainers[0]
	fetch.Image, fetch.Args = "r.io/c:old", append(fetch.Args, "--mirror=hf://=https://hub.example.com")
	box := stored[len(stored)-1].(*unstructured.Unstructured)
	box.Object["status"] = map[string]any{"fetcher": map[string]any{"image": "r.io/c:old", "mirrors": []any{"hf://=https://hub.example.com"}}}
	if got, different := planOf(cluster(t, stored...), model); got != "modelbox/web: no difference" || different {
		t.Errorf("got %s", got)
	}
	box.Object["status"] = nil
	if got, _ := planOf(cluster(t, stored...), model); !strings.HasPrefix(got, "modelbox/web: restarts 1 pod") {
		t.Errorf("without a status: %s", got)
	}
}

// delegated is a cluster whose user may read objects of the five kinds only.
func delegated(t *testing.T, objects ...client.Object) client.WithWatch {
	refused := func(obj any) error {
		kind := reflect.TypeOf(obj).Elem()
		if strings.HasPrefix(kind.PkgPath(), "k8s.io/api/") {
			return apierrors.NewForbidden(schema.GroupResource{Resource: strings.ToLower(kind.Name())}, "", nil)
		}
		return nil
	}
	return interceptor.NewClient(cluster(t, objects...), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return gocmp.Or(refused(obj), c.Get(ctx, key, obj, opts...))
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return gocmp.Or(refused(list), c.List(ctx, list, opts...))
		},
	})
}

// Who may read nothing but the objects gets what the operator builds of these, and what is not visible.
func TestDelegatedUsers(t *testing.T) {
	t.Parallel()
	stored := applied(t, web)
	c := delegated(t, stored[len(stored)-1])
	out, different := planOf(c, strings.Replace(web, "a:1", "a:2", 1))
	for _, part := range []string{"modelbox/web: restarts 4 pods, one after another: change of spec.image; ", "note: its Deployment is compared as the operator builds it: deployment is forbidden", "not considered: reading whether namespace"} {
		if !different || !strings.Contains(out, part) {
			t.Errorf("%q is not in %s", part, out)
		}
	}
	var shown, errOut bytes.Buffer
	code := command.Run(command.Env{
		IOStreams: genericiooptions.IOStreams{Out: &shown, ErrOut: &errOut}, Clock: testclock.NewFakeClock(now), Client: c,
	}, []string{"status", "--all", "-n", "default"})
	for _, part := range []string{"ModelBox/web  not reconciled yet\n", "not visible: deployment is forbidden", "not visible: service is forbidden", "not visible: eventlist is forbidden"} {
		if code != 0 || !strings.Contains(shown.String(), part) {
			t.Errorf("%q is not in %s%s", part, &shown, &errOut)
		}
	}
}

// Who may not write the children gets what the operator builds, without what others have written.
func TestPlanWithoutPermissionForChildren(t *testing.T) {
	t.Parallel()
	stored := applied(t, web)
	stored[0].(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Env[0].Value = "of another"
	c := interceptor.NewClient(cluster(t, stored...), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if _, ours := obj.(*unstructured.Unstructured); ours {
				return c.Patch(ctx, obj, patch, opts...)
			}
			return apierrors.NewForbidden(schema.GroupResource{Resource: "children"}, obj.GetName(), nil)
		},
	})
	const note = "\nmodelbox/web: note: its Deployment is compared as the operator builds it: children \"web\" is forbidden: <nil>"
	for image, want := range map[string]string{
		"a:1": "modelbox/web: no difference",
		"a:2": "modelbox/web: restarts 4 pods, one after another: change of spec.image; needs 1 spare pod with 1 nvidia.com/gpu during the rollout",
	} {
		if got, _ := planOf(c, strings.Replace(web, "a:1", image, 1)); got != want+note {
			t.Errorf("%s: got %s, want %s", image, got, want+note)
		}
	}
}

// A frozen namespace holds restarts, except for who may override that.
func TestRestartInAFrozenNamespace(t *testing.T) {
	t.Parallel()
	frozen := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Annotations: map[string]string{api.AnnotationFrozen: "sale"}}}
	for may, want := range map[bool]string{false: "namespace default is frozen (sale), so app/shop is not restarted", true: "app/shop restarted (deployment/shop)\n"} {
		c := interceptor.NewClient(cluster(t, append(applied(t, app), frozen)...), interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
				obj.(*authorizationv1.SelfSubjectAccessReview).Status.Allowed = may
				return nil
			},
		})
		var out bytes.Buffer
		code := command.Run(command.Env{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &out}, Clock: testclock.NewFakeClock(now), Client: c}, []string{"restart", "app/shop", "-n", "default"})
		if (code == 0) != may || !strings.Contains(out.String(), want) {
			t.Errorf("%t: %d %s", may, code, &out)
		}
	}
}
