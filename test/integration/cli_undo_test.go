// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// revision returns the ReplicaSet of a revision of a Deployment.
func revision(deployment *appsv1.Deployment, number int, change func(*corev1.PodTemplateSpec)) *appsv1.ReplicaSet {
	hash := fmt.Sprintf("hash%d", number)
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: deployment.Name + "-" + hash, Labels: map[string]string{"app": deployment.Name},
			Annotations: map[string]string{"deployment.kubernetes.io/revision": fmt.Sprint(number)},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(int32(number)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"pod-template-hash": hash}},
			Template: *deployment.Spec.Template.DeepCopy(),
		},
	}
	set.Spec.Template.Labels["pod-template-hash"] = hash
	change(&set.Spec.Template)
	control(set, deployment, "Deployment")
	return set
}

func preset(name modelv1.ResourceType) corev1.ResourceRequirements {
	box := &modelv1.ModelBox{Spec: modelv1.ModelBoxSpec{ResourceType: name}}
	modelbox.Default(box)
	return *box.Spec.Resources
}

// withHistory returns a namespace with a ModelBox and four revisions: 2 has another image,
// resources and variables, 3 another node selector, 4 is the current one.
func withHistory(t *testing.T) (*cluster, *modelv1.ModelBox) {
	t.Helper()
	c := newCluster(t)
	box := newBox()
	box.Spec.Envs = []corev1.EnvVar{{Name: "A", Value: "2"}, {Name: "B", Value: "3"}}
	box.Spec.Resources = new(preset(modelv1.ResourceTypeSmall))
	c.create(box)
	deployment := deploymentOf("web", box, "ModelBox")
	main := &deployment.Spec.Template.Spec.Containers[0]
	main.Env, main.Resources = box.Spec.Envs, preset(modelv1.ResourceTypeSmall)
	c.create(deployment)
	c.create(
		revision(deployment, 10, func(*corev1.PodTemplateSpec) {}),
		revision(deployment, 2, func(t *corev1.PodTemplateSpec) {
			main := &t.Spec.Containers[0]
			main.Image, main.Args, main.Env, main.Resources = "nginx:1", []string{"-q"}, []corev1.EnvVar{{Name: "A", Value: "1"}}, preset(modelv1.ResourceTypeLarge)
			t.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}
		}),
		revision(deployment, 3, func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Image, t.Spec.NodeSelector = "nginx:0", map[string]string{"a": "b"}
		}),
		revision(deployment, 1, func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("3")}}
		}),
	)
	return c, box
}

func TestHistory(t *testing.T) {
	c, _ := withHistory(t)
	got := c.run("history", "modelbox/web")
	got.out = regexp.MustCompile(`20\d\d-\S+Z`).ReplaceAllString(got.out, "TIME")
	want(t, got, result{out: `
REVISION   CREATED                REPLICAS   IMAGE     MODEL   CHANGE-CAUSE
1          TIME   1          nginx:2   -       
2          TIME   2          nginx:1   -       
3          TIME   3          nginx:0   -       
10 *       TIME   10         nginx:2   -       
`})
	if got := c.run("history", "modelbox/web", "-o", "json"); !strings.Contains(got.out, `"revision": 10,`) || !strings.Contains(got.out, `"current": true`) {
		t.Errorf("got %+v", got)
	}
	if got := c.run("history", "genericdaemon/a"); got.code != 3 || !strings.Contains(got.err, "use 'kubectl rollout history'") {
		t.Errorf("got %+v", got)
	}
	app := &appv1.App{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: appv1.AppSpec{Image: "a:1"}}
	c.create(app, deploymentOf("app", nil, ""))
	want(t, c.run("history", "app/app"), result{err: "error: deployment \"app\" is not controlled by app/app\n", code: 1})
}

// The digest of a model is what verified it, and for the current revision what status says of the same model.
func TestHistoryOfModels(t *testing.T) {
	since(t, 35, "image volumes")
	c, box := newCluster(t), newBox()
	sum := strings.Repeat("0a", 32)
	box.Status.Model = &modelv1.ModelStatus{URI: "hf://a/b", Digest: "sha256:" + sum}
	c.create(box)
	deployment := deploymentOf("web", box, "ModelBox")
	c.create(deployment)
	fetching := func(args ...string) func(*corev1.PodTemplateSpec) {
		return func(t *corev1.PodTemplateSpec) {
			t.Spec.InitContainers = []corev1.Container{{Name: "fetch-model", Image: "a:1", Command: []string{"/fetch-model"}, Args: args}}
		}
	}
	c.create(
		revision(deployment, 1, fetching("--uri=hf://a/b")),
		revision(deployment, 2, fetching("--uri=https://a/$$(B)", "--sha256="+sum)),
		revision(deployment, 3, fetching(`--models=[{"uri":"https://a/b","sha256":"`+sum+`"},{"name":"c","uri":"https://c/d"}]`)),
		revision(deployment, 4, fetching(`--models=[{"name":"c","uri":"https://c/d"}]`)),
		revision(deployment, 5, func(t *corev1.PodTemplateSpec) {
			t.Spec.Volumes = []corev1.Volume{{Name: "model", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "a@sha256:" + sum}}}}
		}),
		revision(deployment, 6, fetching("--uri=hf://a/b")),
	)
	var models []string
	for line := range strings.Lines(c.run("history", "modelbox/web").out) {
		if columns := strings.Fields(strings.ReplaceAll(line, " *", "")); len(columns) == 5 {
			models = append(models, columns[4])
		}
	}
	if got := strings.Join(models, " "); got != "hf://a/b sha256:0a0a0a0a0a0a sha256:0a0a0a0a0a0a - sha256:0a0a0a0a0a0a sha256:0a0a0a0a0a0a" {
		t.Error(got)
	}
	got := c.run("history", "modelbox/web", "-o", "json").out
	for _, part := range []string{`"model": "https://a/$(B)",`, `"model": "oci://a@sha256:` + sum + `",`, `"digest": "sha256:` + sum + `"`} {
		if !strings.Contains(got, part) {
			t.Errorf("%s is not in\n%s", part, got)
		}
	}
}

// The diff is shown, and the fields of the object itself are changed.
func TestUndo(t *testing.T) {
	c, box := withHistory(t)
	version := box.ResourceVersion
	unchanged := func() {
		t.Helper()
		if c.get(box); box.ResourceVersion != version {
			t.Error("the object was written")
		}
	}
	got := c.run("undo", "modelbox/web", "--to-revision", "2")
	if got.code != 1 || !strings.HasSuffix(got.err, "so use --yes\n") || !strings.HasPrefix(got.out, "--- modelbox/web (live)\n+++ modelbox/web (desired)\n") {
		t.Errorf("got %+v", got)
	}
	for _, line := range []string{"+  args:\n+  - -q\n", "-  - name: B\n-    value: \"3\"\n-  image: nginx:2\n+    value: \"1\"\n+  image: nginx:1\n", "-  resourceType: small\n+  resourceType: large\n"} {
		if !strings.Contains(got.out, line) {
			t.Errorf("the diff lacks\n%s:\n%s", line, got.out)
		}
	}
	c.interactive, c.stdin = true, "n\n"
	if got := c.run("undo", "modelbox/web", "--to-revision", "2"); got.code != 1 || !strings.HasSuffix(got.out, "Return modelbox/web to revision 2? [y/N] ") {
		t.Errorf("got %+v", got)
	}
	unchanged()
	c.stdin = "y\n"
	if got := c.run("undo", "modelbox/web", "--to-revision", "2"); got.code != 0 || !strings.HasSuffix(got.out, "modelbox/web returned to revision 2\n") {
		t.Errorf("got %+v", got)
	}
	c.get(box)
	resources := preset(modelv1.ResourceTypeLarge)
	if box.Spec.Image != "nginx:1" || box.Spec.ResourceType != modelv1.ResourceTypeLarge || len(box.Spec.Envs) != 1 || box.Spec.Envs[0].Value != "1" ||
		len(box.Spec.Args) != 1 || !box.Spec.Resources.Limits.Cpu().Equal(*resources.Limits.Cpu()) || *box.Spec.Replicas != 3 {
		t.Errorf("got %+v", box.Spec)
	}
}

// What is restored, of what, and what is named because it cannot be: then nothing is written.
func TestUndoOf(t *testing.T) {
	change := func(c *cluster, obj client.Object, as string) {
		if err := c.client.Update(ctx, obj, client.FieldOwner(as)); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		prepare    func(c *cluster, box *modelv1.ModelBox)
		args, want string // A part of the error, or else of the output.
		restored   func(*modelv1.ModelBoxSpec) bool
	}{
		"no preset": {nil, "--to-revision=1", "modelbox/web returned to revision 1\n", func(s *modelv1.ModelBoxSpec) bool {
			// Members that a map no longer has are removed.
			return s.ResourceType == modelv1.ResourceTypeCustom && len(s.Resources.Limits) == 1 && len(s.Resources.Requests) == 0
		}},
		"a change that is not rolled out, because the object is paused": {func(c *cluster, box *modelv1.ModelBox) {
			box.Spec.Paused, box.Spec.Image = true, "nginx:pending"
			change(c, box, "user")
		}, "--to-revision=10", "-  image: nginx:pending\n+  image: nginx:2\n", func(s *modelv1.ModelBoxSpec) bool { return s.Image == "nginx:2" && len(s.Envs) == 2 }},
		"a variable that another field manager has added to the Deployment": {func(c *cluster, _ *modelv1.ModelBox) {
			deployment, variable := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: c.namespace}}, corev1.EnvVar{Name: "STAKATER_WEB_CONFIGMAP", Value: "new"}
			c.get(deployment)
			deployment.Spec.Template.Spec.Containers[0].Env = append(deployment.Spec.Template.Spec.Containers[0].Env, variable)
			change(c, deployment, "reloader")
			c.create(revision(deployment, 5, func(t *corev1.PodTemplateSpec) {
				main := &t.Spec.Containers[0]
				main.Image, main.Env = "nginx:5", []corev1.EnvVar{{Name: "A", Value: "5"}, {Name: variable.Name, Value: "old"}}
			}))
		}, "--to-revision=5", "", func(s *modelv1.ModelBoxSpec) bool {
			return len(s.Envs) == 1 && s.Envs[0].Value == "5" && s.Image == "nginx:5"
		}},
		"what spec.podTemplate sets as well": {func(c *cluster, box *modelv1.ModelBox) {
			box.Spec.PodTemplate = &runtime.RawExtension{Raw: []byte(`{"spec":{"containers":[{"name":"web","args":["-t"]}]}}`)}
			change(c, box, "user")
		}, "--to-revision=2", "revision 2 cannot be restored: object is no longer valid: spec.podTemplate.spec.containers[0].args: ", nil},
		"more": {nil, "", "revision 3 differs from the current one in more than the image, command, args, env, envFrom and resources of container \"web\"; nothing was written. " +
			"Change the object itself; the other differences are:\n--- pod template (current)\n+++ pod template (revision)\n", nil},
		"no such revision": {nil, "--to-revision=9", "there is no revision 9; see the command history\n", nil},
		"no number":        {nil, "--to-revision=zzz", "invalid syntax", nil},
		"the same":         {nil, "--to-revision=10", "modelbox/web already has the state of revision 10 (unchanged)\n", func(*modelv1.ModelBoxSpec) bool { return true }},
	} {
		c, box := withHistory(t)
		if tc.prepare != nil {
			tc.prepare(c, box)
		}
		c.get(box)
		version := box.ResourceVersion
		got := c.run(append([]string{"undo", "modelbox/web", "-y"}, strings.Fields(tc.args)...)...)
		c.get(box)
		switch {
		case tc.restored == nil && (got.code == 0 || !strings.Contains(got.err, tc.want) || box.ResourceVersion != version):
			t.Errorf("%s: the object was written, or got %+v", name, got)
		case tc.restored != nil && (got.code != 0 || !strings.Contains(got.out, tc.want) || !tc.restored(&box.Spec) || strings.Contains(tc.want, "unchanged") != (box.ResourceVersion == version)):
			t.Errorf("%s: got %+v and %+v", name, got, box.Spec)
		}
	}
}

// A field manager that will apply the fields again is named, and needs --force.
func TestUndoOfWhatIsApplied(t *testing.T) {
	c, box := withHistory(t)
	manifest := fmt.Appendf(nil, `{"apiVersion":"model.github.com/v1","kind":"ModelBox","metadata":{"name":"web"},"spec":{"image":"nginx:2"}}`)
	if err := c.client.Patch(ctx, box, client.RawPatch(types.ApplyPatchType, manifest), client.FieldOwner("ci"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	args := []string{"undo", "modelbox/web", "--to-revision", "2", "--yes"}
	got := c.run(args...)
	if got.code != 1 || got.err != "warning: field manager \"ci\" owns spec.image, and its next apply reverts the change\nerror: nothing was written: change the source of that field manager, or use --force\n" {
		t.Errorf("got %+v", got)
	}
	if c.get(box); box.Spec.Image != "nginx:2" {
		t.Error("the object was written")
	}
	if got := c.run(append(args, "--force")...); got.code != 0 || !strings.HasPrefix(got.err, "warning: ") {
		t.Errorf("got %+v", got)
	}
	if c.get(box); box.Spec.Image != "nginx:1" {
		t.Errorf("got %s", box.Spec.Image)
	}
}

// A ModelBox that has returned from a failed rollout is undone to what serves, all of it: the current revision by
// default, because the one before it is that of the failed rollout.
func TestUndoOfAFailedRollout(t *testing.T) {
	c, box := withHistory(t)
	box.Spec.OnFailedRollout = modelv1.OnFailedRolloutReturn
	if err := c.client.Update(ctx, box); err != nil {
		t.Fatal(err)
	}
	data, complete, err := workload.RolledOut(&box.Spec)
	if err != nil {
		t.Fatal(err)
	}
	last := box.DeepCopy()
	record := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: workload.RecordName("web", complete)}, Data: runtime.RawExtension{Raw: data},
	}
	if err := c.client.Create(ctx, record); err != nil {
		t.Fatal(err)
	}
	box.Spec.Image, box.Spec.Replicas, box.Spec.Envs = "nginx:bad", new(int32(4)), nil
	box.Spec.Model, box.Spec.MinReadySeconds = &modelv1.Model{URI: "https://example.com/a"}, new(int32(5)) // No revision tells these.
	if err := c.client.Update(ctx, box); err != nil {
		t.Fatal(err)
	}
	_, present, err := workload.RolledOut(&box.Spec)
	if err != nil {
		t.Fatal(err)
	}
	box.Status.Rollout = &modelv1.RolloutStatus{Complete: complete, Present: present, Failed: "no pod can start"}
	if err := c.client.Status().Update(ctx, box); err != nil {
		t.Fatal(err)
	}

	const note = "\nThe rollout of the spec has failed (no pod can start), so revision 10 serves until spec is changed.\n"
	if got := c.run("history", "modelbox/web"); got.code != 0 || !strings.HasSuffix(got.out, note) {
		t.Errorf("got %+v", got)
	}
	if got := c.run("history", "modelbox/web", "-o", "json"); strings.Count(got.out, `"rolledBack": "no pod can start"`) != 1 {
		t.Errorf("got %+v", got)
	}
	if got := c.run("undo", "modelbox/web", "--to-revision", "3", "--yes"); got.code != 1 || !strings.Contains(got.err, "\n+  nodeSelector:\n") {
		t.Errorf("got %+v", got)
	}
	if got := c.run("undo", "modelbox/web", "--yes"); got.code != 0 || !strings.HasSuffix(got.out, "modelbox/web returned to revision 10\n") {
		t.Errorf("got %+v", got)
	}
	last.Spec.Replicas = new(int32(4))
	if c.get(box); !equality.Semantic.DeepEqual(box.Spec, last.Spec) {
		t.Errorf("the spec is not that of the last complete rollout: %s", cmp.Diff(last.Spec, box.Spec))
	}
	if got := c.run("history", "modelbox/web"); strings.Contains(got.out, "has failed") {
		t.Errorf("got %+v", got)
	}

	box.Spec.Image = "nginx:bad"
	if err := c.client.Update(ctx, box); err != nil {
		t.Fatal(err)
	}
	_, box.Status.Rollout.Present, _ = workload.RolledOut(&box.Spec)
	if err := errors.Join(c.client.Status().Update(ctx, box), c.client.Delete(ctx, record)); err != nil {
		t.Fatal(err)
	}
	if got := c.run("undo", "modelbox/web", "--yes"); got.code != 1 || !strings.HasPrefix(got.err, "error: reading the record of the last complete rollout: ") {
		t.Errorf("got %+v", got)
	}
}
