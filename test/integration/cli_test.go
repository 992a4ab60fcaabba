// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/modelbox-operator/modelbox-operator/api"
	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/cli/command"
)

var (
	ctx = context.Background()
	// now is the time of all tests.
	now = time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC)
)

// result is what a command printed, and its exit code.
type result struct {
	out, err string
	code     int
}

// cluster is a namespace for one test.
type cluster struct {
	t         *testing.T
	client    client.WithWatch
	namespace string
	clock     clock.WithTicker
	stdin     string
	// interactive is that the standard input is a terminal.
	interactive bool
	// seen is called with what the command prints.
	seen func(string)
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, client: env.Client, clock: clock.RealClock{}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "cli-"}}
	c.create(namespace)
	c.namespace = namespace.Name
	return c
}

func (c *cluster) create(objects ...client.Object) {
	c.t.Helper()
	for _, obj := range objects {
		if c.namespace != "" {
			obj.SetNamespace(c.namespace)
		}
		status := obj.DeepCopyObject().(client.Object)
		if err := c.client.Create(ctx, obj); err != nil {
			c.t.Fatal(err)
		}
		if _, namespace := obj.(*corev1.Namespace); namespace {
			continue
		}
		if _, event := obj.(*corev1.Event); event {
			continue
		}
		status.SetResourceVersion(obj.GetResourceVersion())
		status.SetUID(obj.GetUID())
		if err := c.client.Status().Update(ctx, status); err != nil {
			c.t.Fatal(err)
		}
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *cluster) get(obj client.Object) {
	c.t.Helper()
	if err := c.client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		c.t.Fatal(err)
	}
}

// Write passes on what a command prints.
func (c *cluster) Write(p []byte) (int, error) {
	if c.seen != nil {
		c.seen(string(p))
	}
	return len(p), nil
}

// run runs a command in the namespace of the test.
func (c *cluster) run(args ...string) result {
	c.t.Helper()
	var out, errOut bytes.Buffer
	code := command.Run(command.Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(c.stdin), Out: writers{&out, c}, ErrOut: &errOut},
		Program:   "modelbox", Clock: c.clock, Client: c.client, Interactive: c.interactive,
	}, append(args, "--namespace", c.namespace))
	return result{strings.ReplaceAll(out.String(), c.namespace, "NS"), errOut.String(), code}
}

type writers struct {
	buffer *bytes.Buffer
	other  *cluster
}

func (w writers) Write(p []byte) (int, error) {
	_, _ = w.buffer.Write(p) // A buffer returns no error.
	return w.other.Write(p)
}

// want compares a result. Ages are written as AGE.
func want(t *testing.T, got, want result) {
	t.Helper()
	got.out = regexp.MustCompile(`\b\d+(ms|[smhd])(\d+[smh])?\b`).ReplaceAllString(got.out, "AGE")
	want.out = strings.TrimPrefix(want.out, "\n")
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func newBox() *modelv1.ModelBox {
	return &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: modelv1.ModelBoxSpec{
		Name: "web", Image: "nginx:2", Replicas: new(int32(3)), ResourceType: modelv1.ResourceTypeSmall,
	}}
}

func condition(name string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: name, Status: status, Reason: reason, Message: message, ObservedGeneration: 1, LastTransitionTime: metav1.Now()}
}

// template returns a pod template with one container.
func template(name, image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: image}}},
	}
}

// deploymentOf returns the Deployment of an owner, which may be nil.
func deploymentOf(name string, owner client.Object, kind string) *appsv1.Deployment {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}, Template: template(name, "nginx:2"),
	}}
	control(deployment, owner, kind)
	return deployment
}

func control(child, owner client.Object, kind string) {
	if owner != nil {
		child.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: "model.github.com/v1", Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true),
		}})
	}
}

func TestStatus(t *testing.T) {
	c := newCluster(t)
	box := newBox()
	box.Status.Conditions = []metav1.Condition{
		condition("Ready", metav1.ConditionFalse, "Progressing", "1 of 3 pods"), condition("Reconciling", metav1.ConditionTrue, "Progressing", ""),
	}
	box.Status.Problems = []modelv1.Problem{{Container: "web", Reason: "ImagePullBackOff", Message: "not found", Count: 2, Since: metav1.Now()}}
	c.create(box)
	deployment := deploymentOf("web", box, "ModelBox")
	deployment.Status = appsv1.DeploymentStatus{Replicas: 3, ReadyReplicas: 1, UpdatedReplicas: 2, AvailableReplicas: 1}
	pod := func(name string, status corev1.ContainerStatus) *corev1.Pod {
		status.Name, status.Image = "web", "nginx:2"
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}}, Spec: template("web", "nginx:2").Spec,
			Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{status}},
		}
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{ClusterIP: "None", Ports: []corev1.ServicePort{{Port: 80}}}}
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "web.1"}, InvolvedObject: corev1.ObjectReference{Kind: "Deployment", Name: "web", Namespace: c.namespace},
		Type: "Normal", Reason: "ScalingReplicaSet", Message: "Scaled up", LastTimestamp: metav1.Now(),
	}
	c.create(deployment, service, event,
		pod("web-1", corev1.ContainerStatus{Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}),
		pod("web-2", corev1.ContainerStatus{RestartCount: 2, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}))
	tree := `
ModelBox/web  not ready
├── Ready=False  Progressing (AGE): 1 of 3 pods
├── Reconciling=True  Progressing (AGE)
├── problem: ImagePullBackOff of container web in 2 pods for AGE: not found
├── Deployment/web  1/3 ready, 2 updated, 1 available
│   ├── Pod/web-1  Running  1/1 ready, 0 restarts, AGE
│   └── Pod/web-2  ImagePullBackOff  0/1 ready, 2 restarts, AGE
├── Service/web  ClusterIP None  80/TCP  [not controlled by the object]
└── events
    └── AGE ago  Normal ScalingReplicaSet of Deployment: Scaled up
`
	want(t, c.run("status", "mb/web"), result{out: tree})
	want(t, c.run("status", "ModelBox", "web"), result{out: tree})
	c.create(&mtsrev1.Eru{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}, Spec: mtsrev1.EruSpec{DeploymentName: "none"}, Status: mtsrev1.EruStatus{
		NextScheduleTime: new(metav1.NewTime(now)), History: []mtsrev1.EruHistory{{Slot: metav1.NewTime(now), Result: mtsrev1.EruSkipped, Reason: "TargetNotFound"}},
	}})
	daemon := &mydomainv1beta1.Genericdaemon{ObjectMeta: metav1.ObjectMeta{Name: "logs"}, Spec: mydomainv1beta1.GenericdaemonSpec{Image: "a:1"}}
	daemon.Status.Conditions = []metav1.Condition{condition("Ready", metav1.ConditionFalse, "Progressing", "1 of 3 pods are available")}
	daemon.Status.Problems = []modelv1.Problem{{Container: "logs", Reason: "ImagePullBackOff", Message: "not found", Count: 2, Since: metav1.Now()}}
	c.create(daemon)
	want(t, c.run("status", "--all"), result{out: tree + `Genericdaemon/logs  not ready
├── Ready=False  Progressing (AGE): 1 of 3 pods are available
└── problem: ImagePullBackOff of container logs in 2 pods for AGE: not found
Eru/nightly  not reconciled yet
├── next run: 2026-03-28T00:00:00Z
└── run of 2026-03-28T00:00:00Z: Skipped TargetNotFound
`})
	for _, tc := range []struct {
		args []string
		err  string
	}{
		{[]string{"modelbox/none"}, "error: modelboxes.model.github.com \"none\" not found\n"},
		{[]string{"pod/web"}, "error: \"pod\" is none of the operator's kinds: use one of modelbox, app, genericdaemon, uniteddeployment, eru\n"},
		{[]string{"web"}, "error: \"web\" names no object: write KIND/NAME, such as modelbox/web\n"},
		{nil, "error: name an object as KIND/NAME, such as modelbox/web, or set --all\n"},
		{[]string{"modelbox/web", "--all"}, "error: name an object, or set --all or --sizes, not both\n"},
	} {
		code := 3
		if strings.HasSuffix(tc.err, "not found\n") {
			code = 1
		}
		want(t, c.run(append([]string{"status"}, tc.args...)...), result{err: tc.err, code: code})
	}
}

// Following ends with the outcome, which is the exit code.
func TestStatusFollows(t *testing.T) {
	c := newCluster(t)
	box := newBox()
	box.Status = modelv1.ModelBoxStatus{WorkloadStatus: modelv1.WorkloadStatus{
		UpdatedReplicas: 3, AvailableReplicas: 1,
		ChildrenStatus: modelv1.ChildrenStatus{Conditions: []metav1.Condition{condition("Ready", metav1.ConditionFalse, "Progressing", "1 of 3")}},
	}}
	c.create(box)
	progressing := "modelbox/web  Progressing: 1 of 3\n"
	want(t, c.run("status", "modelbox/web", "-w", "--timeout", "1ns"), result{progressing, "error: modelbox/web is neither Ready nor Stalled after 1ns\n", 2})

	// The object becomes Ready as soon as it is followed.
	c.seen = func(line string) {
		c.seen = nil
		if line != progressing {
			t.Errorf("got %q", line)
		}
		box.Status.AvailableReplicas = 3
		box.Status.Conditions = []metav1.Condition{condition("Ready", metav1.ConditionTrue, "Ready", "")}
		if err := c.client.Status().Update(ctx, box); err != nil {
			t.Error(err)
		}
	}
	ready := "modelbox/web  Ready\n"
	want(t, c.run("status", "modelbox/web", "-w"), result{out: progressing + ready})
	want(t, c.run("status", "modelbox/web", "-w"), result{out: ready})

	// An error after the first read is shown, and the object is read again.
	box.Status.Conditions[0].Status, box.Status.Conditions[0].Reason = metav1.ConditionFalse, "Progressing"
	if err := c.client.Status().Update(ctx, box); err != nil {
		t.Fatal(err)
	}
	reads, direct := 0, c.client
	c.client = interceptor.NewClient(direct, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		if reads++; reads == 2 {
			box.Status.Conditions[0].Status, box.Status.Conditions[0].Reason = metav1.ConditionTrue, "Ready"
			if err := direct.Status().Update(ctx, box); err != nil {
				t.Error(err)
			}
			return apierrors.NewServiceUnavailable("restarting")
		}
		return c.Get(ctx, key, obj, opts...)
	}})
	want(t, c.run("status", "modelbox/web", "-w"), result{out: strings.Replace(ready, "  Ready", "  Progressing", 1) + "modelbox/web  restarting\n" + ready})
	c.client = direct

	// A condition of an older generation is no outcome.
	box.Spec.Image = "nginx:3"
	if err := c.client.Update(ctx, box); err != nil {
		t.Fatal(err)
	}
	c.seen = func(string) {
		c.seen = nil
		stalled := condition("Stalled", metav1.ConditionTrue, "ProgressDeadlineExceeded", "no progress")
		failed := condition("Ready", metav1.ConditionFalse, "ProgressDeadlineExceeded", "no progress")
		stalled.ObservedGeneration, failed.ObservedGeneration = 2, 2
		box.Status.Conditions = []metav1.Condition{failed, stalled}
		if err := c.client.Status().Update(ctx, box); err != nil {
			t.Error(err)
		}
	}
	want(t, c.run("status", "modelbox/web", "-w"), result{
		"modelbox/web  waiting for the controller to reconcile the object\n" +
			"modelbox/web  ProgressDeadlineExceeded: no progress\n",
		"error: modelbox/web is Stalled: ProgressDeadlineExceeded: no progress\n", 1,
	})

	box.Status.Conditions = box.Status.Conditions[:1]
	if err := c.client.Status().Update(ctx, box); err != nil {
		t.Fatal(err)
	}
	c.seen = func(string) {
		c.seen = nil
		if err := c.client.Delete(ctx, box); err != nil {
			t.Error(err)
		}
	}
	if got := c.run("status", "modelbox/web", "-w"); got.err != "error: modelbox/web was deleted\n" || got.code != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestRestart(t *testing.T) {
	c := newCluster(t)
	c.clock = testclock.NewFakeClock(now)
	box, app := newBox(), &appv1.App{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: appv1.AppSpec{Image: "a:1"}}
	daemon := &mydomainv1beta1.Genericdaemon{ObjectMeta: metav1.ObjectMeta{Name: "daemon"}, Spec: mydomainv1beta1.GenericdaemonSpec{Image: "a:1"}}
	united := &extensionv1.UnitedDeployment{ObjectMeta: metav1.ObjectMeta{Name: "united"}, Spec: extensionv1.UnitedDeploymentSpec{DeploymentName: "other", Replicas: new(int32(1))}}
	eru := &mtsrev1.Eru{ObjectMeta: metav1.ObjectMeta{Name: "eru"}, Spec: mtsrev1.EruSpec{DeploymentName: "third"}}
	byAlias := &mtsrev1.Eru{ObjectMeta: metav1.ObjectMeta{Name: "alias"}, Spec: mtsrev1.EruSpec{DeprecatedDeploymentName: "fourth"}}
	c.create(box, app, daemon, united, eru, byAlias)
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "daemon"}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "daemon"}}, Template: template("daemon", "a:1"),
	}}
	c.create(set)
	for _, tc := range []struct {
		target, child string
	}{
		{"modelbox/web", "deployment/web"}, {"app/app", "deployment/app"}, {"genericdaemon/daemon", "daemonset/daemon"},
		{"uniteddeployment/united", "deployment/other"}, {"eru/eru", "deployment/third"},
		{"eru/alias", "deployment/fourth"},
	} {
		kind, name, _ := strings.Cut(tc.child, "/")
		var child client.Object = set
		if kind == "deployment" {
			child = deploymentOf(name, nil, "")
			want(t, c.run("restart", tc.target), result{err: fmt.Sprintf("error: %s has nothing to restart: deployments.apps %q not found\n", tc.target, name), code: 1})
			c.create(child)
		}
		want(t, c.run("restart", tc.target), result{out: fmt.Sprintf("%s restarted (%s)\n", tc.target, tc.child)})
		c.get(child)
		if got := annotationsOf(child)["kubectl.kubernetes.io/restartedAt"]; got != "2026-03-28T00:00:00Z" {
			t.Errorf("%s: got %q", tc.target, got)
		}
		// The time of a restart only moves forward.
		version := child.GetResourceVersion()
		if got := c.run("restart", tc.target); got.code != 1 || !strings.Contains(got.err, "was already restarted for 2026-03-28T00:00:00Z") {
			t.Errorf("%s: got %+v", tc.target, got)
		}
		if c.get(child); child.GetResourceVersion() != version {
			t.Errorf("%s was written again", tc.child)
		}
	}
	deployment := deploymentOf("web", nil, "")
	deployment.Namespace = c.namespace
	c.get(deployment)
	deployment.Spec.Paused = true
	if err := c.client.Update(ctx, deployment); err != nil {
		t.Fatal(err)
	}
	if got := c.run("restart", "modelbox/web"); got.code != 1 || !strings.Contains(got.err, "run 'kubectl rollout resume deployment/web' first") {
		t.Errorf("got %+v", got)
	}
}

func annotationsOf(child client.Object) map[string]string {
	if set, ok := child.(*appsv1.DaemonSet); ok {
		return set.Spec.Template.Annotations
	}
	return child.(*appsv1.Deployment).Spec.Template.Annotations
}

func TestPauseAndResume(t *testing.T) {
	c := newCluster(t)
	box := newBox()
	c.create(box)
	for _, tc := range []struct {
		command, out string
		paused       bool
	}{
		{"resume", "modelbox/web resumed (unchanged)\n", false}, {"pause", "modelbox/web paused\n", true},
		{"pause", "modelbox/web paused (unchanged)\n", true}, {"resume", "modelbox/web resumed\n", false},
	} {
		want(t, c.run(tc.command, "modelbox/web"), result{out: tc.out})
		if c.get(box); box.Spec.Paused != tc.paused {
			t.Errorf("%s: paused is %t", tc.command, box.Spec.Paused)
		}
	}
	want(t, c.run("pause", "eru/a"), result{err: "error: an Eru cannot be paused: set spec.enabled to false\n", code: 3})
	if help := c.run("pause", "--help"); !strings.Contains(help.out, "take effect when the object is resumed") {
		t.Errorf("got %s", help.out)
	}
}

// A rollout that waits for a window is started by those who may override a freeze, and by no others; what
// waits for something else is told.
func TestRolloutNow(t *testing.T) {
	c := newCluster(t)
	box := newBox()
	box.Status.ObservedGeneration, box.Status.Template = 1, "hash"
	box.Status.Conditions = []metav1.Condition{condition(api.ConditionReady, metav1.ConditionTrue, "Ready", "2 of 2 pods are available")}
	c.create(box)
	for _, tc := range []struct {
		change func()
		want   string
	}{
		{func() {}, "condition Ready is True (Ready): 2 of 2 pods are available"},
		{func() {
			box.Status.Conditions[0] = condition(api.ConditionReady, metav1.ConditionFalse, "WaitingForWindow", "it waits")
		}, "only changed configuration waits, and 'modelbox restart' gives it to the pods now: it waits"},
		{func() { box.Status.Template, box.Status.ObservedGeneration = "", 0 }, "the controller has not observed generation 1 yet; try again in a moment"},
	} {
		c.get(box)
		if tc.change(); c.client.Status().Update(ctx, box) != nil {
			t.Fatal("the status cannot be written")
		}
		want(t, c.run("rollout", "now", "modelbox/web"), result{err: "error: nothing was written, because no change of the spec of modelbox/web waits for a window: " + tc.want + "\n", code: 1})
	}
	box.Status.ObservedGeneration = 1
	if err := c.client.Status().Update(ctx, box); err != nil {
		t.Fatal(err)
	}
	admin := c.client
	c.asEditor()
	got := c.run("rollout", "now", "modelbox/web")
	if got.code != 1 || !strings.Contains(got.err, "wait for the next window, remove spec.windows, or ask for the verb override on freezes.rights.modelbox-operator.github.io") {
		t.Errorf("got %+v", got)
	}
	c.client = admin
	started := "modelbox/web annotated with modelbox-operator.github.io/rollout-now=1: the rollout of this spec waits for no window; follow it with 'modelbox status modelbox/web -w'\n"
	want(t, c.run("rollout", "now", "modelbox/web"), result{out: started})
	if c.get(box); box.Annotations[api.AnnotationRolloutNow] != "1" || box.Generation != 1 {
		t.Errorf("got %v", box.ObjectMeta)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}
	if err := c.client.Patch(ctx, namespace, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"sale"}}}`, api.AnnotationFrozen))); err != nil {
		t.Fatal(err)
	}
	want(t, c.run("rollout", "now", "modelbox", "web"), result{out: started, err: "warning: namespace " + c.namespace + " is frozen (sale), so the rollout waits for the end of the freeze\n"})
	want(t, c.run("rollout", "now", "eru/a"), result{err: "error: eru/a has no rollout that waits for a window: a ModelBox, an App and a Genericdaemon have\n", code: 3})
	want(t, c.run("rollout", "restart", "modelbox/web"), result{err: "error: unknown argument \"restart\": write rollout now KIND/NAME\n", code: 3})
}

func TestCompletion(t *testing.T) {
	c := newCluster(t)
	for args, want := range map[string]string{
		"status ":      "modelbox/\napp/\ngenericdaemon/\nuniteddeployment/\neru/\n:6\n",
		"pause ":       "modelbox/\napp/\ngenericdaemon/\n:6\n",
		"rollout ":     "now\n:4\n",
		"rollout now ": "modelbox/\napp/\ngenericdaemon/\n:6\n",
		"lint -o ":     "text\njson\nyaml\n:4\n",
	} {
		// The flag comes before the word that is completed.
		words := strings.Split(args, " ")
		words = append([]string{"__complete", words[0], "--namespace", c.namespace}, words[1:]...)
		var out bytes.Buffer
		code := command.Run(command.Env{
			IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &bytes.Buffer{}}, Program: "modelbox", Clock: c.clock, Client: c.client,
		}, words)
		if code != 0 || out.String() != want {
			t.Errorf("%q: got %d %q, want %q", args, code, out.String(), want)
		}
	}
}

// All that is scheduled in a namespace, and in all of them. What admission would refuse is left out.
func TestNextOfTheCluster(t *testing.T) {
	other := newCluster(t)
	other.create(&mtsrev1.Eru{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: mtsrev1.EruSpec{Enabled: true, Schedule: "30 1 28 3 *"}})
	c := newCluster(t)
	c.clock = testclock.NewFakeClock(now)
	day := modelv1.Schedule{Name: "day", Schedule: "30 1 28 3 *", TimeZone: "Etc/UTC", Replicas: 6}
	c.create(
		&appv1.App{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: appv1.AppSpec{Image: "a:1", Schedules: []modelv1.Schedule{day}}},
		&mtsrev1.Eru{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}, Spec: mtsrev1.EruSpec{Enabled: true, Schedule: "30 2 * * *", TimeZone: "Europe/Berlin"}},
		&mtsrev1.Eru{ObjectMeta: metav1.ObjectMeta{Name: "wrong"}, Spec: mtsrev1.EruSpec{Enabled: true, Schedule: "never"}},
		&mtsrev1.Eru{ObjectMeta: metav1.ObjectMeta{Name: "disabled"}, Spec: mtsrev1.EruSpec{Schedule: "30 1 28 3 *"}},
	)
	got := c.run("next", "-o", "table", "--time-zone", "Europe/Berlin", "-n", "3")
	if !strings.HasPrefix(got.err, "warning: Eru "+c.namespace+"/wrong is left out: ") {
		t.Errorf("got %q", got.err)
	}
	got.err = ""
	header := regexp.MustCompile(` +`)
	got.out = header.ReplaceAllString(got.out, " ")
	want(t, got, result{out: `
TIME IN NAMESPACE OBJECT ACTION NOTE
Sat 2026-03-28T02:30:00+01:00 AGE NS app/app 6 replicas (day) 1 more in this minute
Sat 2026-03-28T02:30:00+01:00 AGE NS eru/nightly restart 1 more in this minute
Sun 2026-03-29T03:00:00+02:00 AGE NS eru/nightly restart clocks go forward AGE at 2026-03-29 02:00; 02:30 does not exist on this day, so it runs right after the change (Europe/Berlin)
`})
	all := header.ReplaceAllString(c.run("next", "-A", "-n", "1000").out, " ")
	for _, line := range []string{" NS app/app 6 replicas (day) 1 more in this minute\n", " " + other.namespace + " eru/other restart \n"} {
		if !strings.Contains(all, "Sat 2026-03-28T01:30:00Z 90m"+line) {
			t.Errorf("%q is not in\n%s", line, all)
		}
	}
	if got := c.run("next", "eru/nightly", "-n", "1", "--time-zone", "Asia/Shanghai"); got.code != 0 || !strings.Contains(got.out, "Sat 2026-03-28T09:30:00+08:00") || !strings.Contains(got.out, "eru/nightly") {
		t.Errorf("got %+v", got)
	}
	if got := c.run("next", "modelbox/web"); got.code != 1 || !strings.Contains(got.err, "not found") {
		t.Errorf("got %+v", got)
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "modelboxes"}, "", nil)
	c.client = interceptor.NewClient(c.client, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return forbidden
	}})
	want(t, c.run("next", "-A"), result{err: "error: listing modelboxes: " + forbidden.Error() + "\n", code: 1})
}

func TestVersionOfTheProcesses(t *testing.T) {
	c := newCluster(t)
	for name, image := range map[string]string{"modelbox-webhook": "registry.example.com:5000/modelbox-webhook:v1.2.3", "modelbox-controller": "modelbox-controller"} {
		deployment := deploymentOf(name, nil, "")
		deployment.Spec.Template = template(name, image)
		c.create(deployment)
	}
	check := func(controller string) {
		t.Helper()
		got := c.run("version", "--operator-namespace", c.namespace)
		if got.code != 0 || !strings.HasSuffix(got.out, "\nmodelbox-webhook: registry.example.com:5000/modelbox-webhook:v1.2.3\nmodelbox-controller: "+controller+"\n") {
			t.Errorf("got %+v", got)
		}
	}
	check("modelbox-controller")
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "modelbox-controller", Namespace: c.namespace}}
	label := []byte(`{"metadata":{"labels":{"app.kubernetes.io/version":"v9"}}}`) // The tag may be any.
	if err := c.client.Patch(ctx, deployment, client.RawPatch(types.MergePatchType, label)); err != nil {
		t.Fatal(err)
	}
	check("v9")
}
