// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// start is when the object is created. Times in status are in whole seconds.
var start = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// cluster is a reader of the pods and nodes of one namespace. It counts the lists.
type cluster struct {
	client.Reader
	pods       []corev1.Pod
	nodes      []corev1.Node
	more       string
	err        error
	pod, node  int
	limits     []int64
	namespaces map[string]bool
}

func (c *cluster) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	c.limits = append(c.limits, o.Limit)
	switch into := into.(type) {
	case *corev1.PodList:
		c.pod++
		c.namespaces[o.Namespace] = true
		into.Items, into.Continue = c.pods, c.more
	case *corev1.NodeList:
		c.node++
		into.Items = c.nodes
	}
	return c.err
}

// object is a ModelBox that is not ready, with its Deployment, and a Looker.
type object struct {
	*modelv1.ModelBox
	*cluster
	deployment *appsv1.Deployment
	clock      *clocktesting.FakePassiveClock
	looker     *Looker
	// writes are how often the status was written.
	writes int
	again  time.Duration
}

func newObject() *object {
	o := &object{
		ModelBox: &modelv1.ModelBox{}, cluster: &cluster{namespaces: map[string]bool{}}, clock: clocktesting.NewFakePassiveClock(start),
		deployment: &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{}}},
	}
	o.Name, o.Namespace, o.UID, o.Generation = "box", "team", "1", 1
	o.deployment.Name, o.deployment.Generation, o.deployment.Status.ObservedGeneration = "box", 1, 1
	o.restartProcess()
	return o
}

func (o *object) restartProcess() { o.looker = NewLooker(o.cluster, o.clock) }

// reconcile does what the kinds do with the result, and returns the readiness.
func (o *object) reconcile(ready bool) status.Readiness {
	before := o.Status.DeepCopy()
	readiness := status.Progressing("0 of 1 pods are available")
	o.again = 0
	if ready {
		readiness = status.NewReady("1 of 1 pods are available")
		o.looker.Forget(client.ObjectKeyFromObject(o.ModelBox))
		o.Status.Problems = nil
	} else {
		found, again := o.looker.Look(context.Background(), &Subject{
			Owner: o.ModelBox, Workload: OfDeployment(o.deployment), Conditions: o.Status.Conditions, Problems: o.Status.Problems,
		})
		o.Status.Problems, o.again = found.Problems, again
		readiness = found.Describe(readiness)
	}
	now := metav1.NewTime(o.clock.Now().Truncate(time.Second))
	readiness.SetConditions(&o.Status.Conditions, o.Generation, now)
	if !cmp.Equal(before, &o.Status) {
		o.writes++
	}
	return readiness
}

// run lets time pass, and reconciles as often as the result says, and at these times.
func (o *object) run(d time.Duration) {
	end := o.clock.Now().Add(d)
	for o.again > 0 && !o.clock.Now().Add(o.again).After(end) {
		o.clock.SetTime(o.clock.Now().Add(o.again))
		o.reconcile(false)
	}
	o.clock.SetTime(end)
}

func badImage(name string) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "team", CreationTimestamp: metav1.NewTime(start), Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "5d4f"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "box-5d4f", Controller: new(true)}},
	}}
	pod.Spec.NodeName = "node"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "box", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"},
	}}}
	return pod
}

func TestPodsAreListedWhenTheObjectHasNotBeenReadyForLong(t *testing.T) {
	o := newObject()
	o.pods = []corev1.Pod{badImage("a")}
	for range 14 {
		o.reconcile(false)
		if o.pod != 0 || o.again <= 0 || o.again > 16*time.Second {
			t.Fatalf("%d lists after %s, again after %s", o.pod, o.clock.Since(start), o.again)
		}
		o.clock.SetTime(o.clock.Now().Add(time.Second))
	}
	o.run(5 * time.Second)
	if o.pod != 1 || !o.namespaces["team"] || o.limits[0] != maxListed {
		t.Errorf("%d lists in %v with limits %v", o.pod, o.namespaces, o.limits)
	}
	got := o.reconcile(false)
	want := status.NewStalled("ImagePullBackOff", `0 of 1 pods are available; ImagePullBackOff (container "box" of 1 pod): not found`)
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// An object that stays the same for an hour costs about 12 lists and no write; a reconcile for
// another reason lists nothing and changes nothing.
func TestAnHour(t *testing.T) {
	o := newObject()
	o.pods = []corev1.Pod{badImage("a")}
	o.reconcile(false)
	o.run(10 * time.Minute)
	lists, writes := o.pod, o.writes
	if lists < 4 || lists > 8 || writes != 2 {
		t.Errorf("%d lists and %d writes in the first ten minutes", lists, writes)
	}
	for minute := range 60 {
		o.run(time.Minute)
		before := o.pod
		o.pods[0].Status.ContainerStatuses[0].RestartCount = int32(minute)
		o.reconcile(false)
		if o.pod != before {
			t.Errorf("a reconcile for another reason lists pods in minute %d", minute)
		}
	}
	if lists, writes = o.pod-lists, o.writes-writes; lists < 11 || lists > 13 || writes != 0 {
		t.Errorf("%d lists and %d writes in an hour, want about 12 and none", lists, writes)
	}
}

// While a model is being fetched, the pods are listed every 5 s in the first minute, and every
// 15 s then: when the fetch fails, nothing that is watched changes. The status is written when it begins, when it fails, and not in between.
func TestAModelIsBeingFetched(t *testing.T) {
	o := newObject()
	pod := badImage("box-5d4f-x")
	pod.Spec.InitContainers = []corev1.Container{{Name: "fetch-model", Command: []string{"/fetch-model"}}}
	pod.Status.ContainerStatuses = nil
	fetch := corev1.ContainerStatus{Name: "fetch-model", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(start)}}}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{fetch}
	o.pods = []corev1.Pod{pod}
	o.reconcile(false)
	o.run(10 * time.Minute)
	if o.pod < 43 || o.pod > 47 || o.writes != 2 {
		t.Errorf("%d lists and %d writes in ten minutes, want about 45 and 2", o.pod, o.writes)
	}
	got, want := o.reconcile(false), status.Progressing("0 of 1 pods are available; FetchingModel (container %q of 1 pod, since 2026-01-02T03:00:00Z): "+
		"the model is being fetched; the log of the container has the progress", "fetch-model")
	if want.Reason = "FetchingModel"; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	failed := corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.NewTime(o.clock.Now()), Message: "[WrongHash] sha256 is 12"}
	o.pods[0].Status.InitContainerStatuses[0].State = corev1.ContainerState{Terminated: &failed}
	o.run(16 * time.Second)
	got, want = o.reconcile(false), status.NewStalled("ModelFetchFailed", `0 of 1 pods are available; ModelFetchFailed (container "fetch-model" of 1 pod): [WrongHash] sha256 is 12`)
	if got != want || o.writes != 3 {
		t.Errorf("%d writes, %+v, want %+v", o.writes, got, want)
	}
}

func TestTheShortestPauseComesBack(t *testing.T) {
	for name, change := range map[string]func(*object){
		"the generation":    func(o *object) { o.Generation++ },
		"what the pods say": func(o *object) { o.pods = []corev1.Pod{badImage("a"), badImage("b")} },
		"the Deployment":    func(o *object) { o.deployment.Status.AvailableReplicas = 1 },
	} {
		o := newObject()
		o.pods = []corev1.Pod{badImage("a")}
		o.reconcile(false)
		o.run(20 * time.Minute)
		if o.again != longestPause {
			t.Fatalf("the pause is %s", o.again)
		}
		change(o)
		o.reconcile(false)
		if name == "the generation" && len(o.Status.Problems) > 0 {
			t.Errorf("the problems are those of another generation: %v", o.Status.Problems)
		}
		before := o.pod
		o.run(longestPause)
		o.reconcile(false)
		if lists := o.pod - before; name != "the Deployment" && lists < 3 {
			t.Errorf("%s has changed, and there are %d lists in five minutes", name, lists)
		}
	}
}

// A change of the workload's status is a reason to look, but not more often than every 15 s.
func TestAtMostEvery15Seconds(t *testing.T) {
	o := newObject()
	o.pods = []corev1.Pod{badImage("a")}
	for second := range 600 {
		o.deployment.Status.ReadyReplicas = int32(second % 7)
		o.pods[0].Status.ContainerStatuses[0].State.Waiting.Message = strings.Repeat("x", second)
		if second%50 == 0 {
			o.Generation++
		}
		o.reconcile(false)
		o.clock.SetTime(o.clock.Now().Add(time.Second))
	}
	if o.pod < 20 || o.pod > 600/15 {
		t.Errorf("%d lists in ten minutes", o.pod)
	}
}

// A new process lists at once, because it has no memory, and has the status of the old one
// until then.
func TestARestartOfTheProcess(t *testing.T) {
	o := newObject()
	o.pods = []corev1.Pod{badImage("a")}
	o.reconcile(false)
	o.run(10 * time.Minute)
	lists, writes := o.pod, o.writes
	o.restartProcess()
	o.looker.limiter.AllowN(o.clock.Now(), listsAtOnce) // Others were earlier.
	o.reconcile(false)
	if o.pod != lists || o.writes != writes {
		t.Errorf("%d lists, %d writes", o.pod-lists, o.writes-writes)
	}
	o.run(16 * time.Second)
	if o.pod != lists+1 || o.writes != writes {
		t.Errorf("%d lists, %d writes after 16 s", o.pod-lists, o.writes-writes)
	}
}

func TestNothingOfAnObjectThatIsReadyOrGoneStays(t *testing.T) {
	o := newObject()
	o.pods = []corev1.Pod{badImage("a")}
	o.reconcile(false)
	o.run(time.Minute)
	lists := o.pod
	o.reconcile(true)
	if len(o.looker.schedules) != 0 || len(o.Status.Problems) != 0 || o.again != 0 || o.pod != lists {
		t.Errorf("%d schedules, problems %v, again after %s", len(o.looker.schedules), o.Status.Problems, o.again)
	}
	o.reconcile(false)
	if o.pod != lists || o.again < 15*time.Second {
		t.Errorf("%d lists, again after %s: it has just become not ready", o.pod-lists, o.again)
	}
	o.UID = "2" // Another object of the name.
	o.Status = modelv1.ModelBoxStatus{}
	o.reconcile(false)
	if len(o.looker.schedules) != 1 || o.again < 15*time.Second {
		t.Errorf("%d schedules, again after %s", len(o.looker.schedules), o.again)
	}
}

func TestWhileChildrenCannotBeWritten(t *testing.T) {
	o := newObject()
	o.pods = []corev1.Pod{badImage("a")}
	o.reconcile(false)
	o.run(10 * time.Minute)
	before := o.pod
	o.looker.Skip(o.ModelBox)
	o.Status.Problems = nil
	o.reconcile(false)
	o.run(time.Second)
	if o.pod != before+1 || len(o.Status.Problems) != 1 {
		t.Errorf("%d lists after it, problems %v", o.pod-before, o.Status.Problems)
	}
}

func TestAListThatFails(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no right"))
	for name, test := range map[string]struct {
		err  error
		note string
	}{
		"forbidden": {forbidden, "; why is not known, because its pods may not be listed: listing pods: pods is forbidden: no right"},
		"timeout":   {context.DeadlineExceeded, ""},
	} {
		o := newObject()
		o.err = test.err
		o.reconcile(false)
		o.run(10 * time.Minute)
		if o.pod < 3 || o.pod > 8 {
			t.Errorf("%s: %d lists in ten minutes", name, o.pod)
		}
		want := status.Progressing("%s", "0 of 1 pods are available"+test.note)
		if got := o.reconcile(false); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		o.err, o.pods = nil, []corev1.Pod{badImage("a")}
		o.run(5 * time.Minute)
		known := o.reconcile(false)
		o.err = test.err
		o.run(5 * time.Minute)
		if got := o.reconcile(false); !strings.HasPrefix(got.Message, known.Message) || got.Reason != known.Reason || len(o.Status.Problems) != 1 {
			t.Errorf("%s: %+v, after %+v was known", name, got, known)
		}
	}
}

func TestWhatIsNotReadIsSaid(t *testing.T) {
	o := newObject()
	o.more = "more"
	o.pods = make([]corev1.Pod, maxListed)
	for i := range o.pods {
		o.pods[i] = badImage(fmt.Sprint("pod", i))
	}
	o.reconcile(false)
	o.run(20 * time.Second)
	if got := o.reconcile(false).Message; o.pod != 1 || !strings.HasSuffix(got, "of 500 pods): not found; only 500 of its pods were read") {
		t.Errorf("%d lists: %s", o.pod, got)
	}
}

// Nothing is listed, or remembered, of an object on whose last change the cluster has not acted.
// What was known of it stays.
func TestBeforeTheClusterHasActed(t *testing.T) {
	o := newObject()
	o.pods = []corev1.Pod{badImage("a")}
	o.deployment.Generation = 2
	o.reconcile(false)
	if len(o.looker.schedules) != 0 || o.again != 0 {
		t.Errorf("%d schedules, again after %s", len(o.looker.schedules), o.again)
	}
	o.deployment.Generation = 1
	o.reconcile(false)
	o.run(time.Minute)
	lists := o.pod
	o.deployment.Generation = 2
	o.clock.SetTime(o.clock.Now().Add(time.Hour))
	o.reconcile(false)
	if o.pod != lists || len(o.Status.Problems) != 1 || o.again != 0 {
		t.Errorf("%d lists, problems %v, again after %s", o.pod-lists, o.Status.Problems, o.again)
	}
}

// If thousands of objects are not ready at the same time, most of them wait.
func TestManyObjects(t *testing.T) {
	o := newObject()
	for range 1000 {
		o.UID += "x"
		o.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", LastTransitionTime: metav1.NewTime(start.Add(-time.Hour))}}
		o.reconcile(false)
		if o.again > longestPause || o.again <= 0 {
			t.Fatalf("again after %s", o.again)
		}
	}
	if o.pod != listsAtOnce {
		t.Errorf("%d lists at once", o.pod)
	}
}

// kubelet before Kubernetes 1.32 says only between the pauses why an image cannot be pulled,
// and a container that is ready for a moment begins to be not ready again.
func TestWhatWasKnownEarlierStays(t *testing.T) {
	found := Found{Problems: []modelv1.Problem{
		{Container: "a", Reason: "ImagePullBackOff", Message: `Back-off pulling image "x"`, Since: metav1.NewTime(start.Add(time.Hour))},
		{Container: "b", Reason: "CrashLoopBackOff", Message: "exit code 2", Since: metav1.NewTime(start.Add(time.Hour))},
	}}
	found.settle([]modelv1.Problem{
		{Container: "b", Reason: "CrashLoopBackOff", Message: "exit code 1", Since: metav1.NewTime(start)},
		{Container: "a", Reason: "ImagePullBackOff", Message: "not found", Since: metav1.NewTime(start)},
		{Container: "c", Reason: "OOMKilled"},
	})
	want := []modelv1.Problem{
		{Container: "a", Reason: "ImagePullBackOff", Message: "not found", Since: metav1.NewTime(start)},
		{Container: "b", Reason: "CrashLoopBackOff", Message: "exit code 2", Since: metav1.NewTime(start)},
	}
	if diff := cmp.Diff(want, found.Problems); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDescribe(t *testing.T) {
	at := metav1.NewTime(start)
	for name, test := range map[string]struct {
		found   Found
		r, want status.Readiness
	}{
		"nothing": {Found{}, status.Progressing("0 of 1"), status.Progressing("0 of 1")},
		"needs a human": {
			Found{Problems: []modelv1.Problem{{Container: "a", Reason: "OOMKilled", Message: "m", Count: 2, Since: at}}, Human: true},
			status.Progressing("0 of 2"), status.NewStalled("OOMKilled", `0 of 2; OOMKilled (container "a" of 2 pods): m`),
		},
		"may pass": {
			Found{Problems: []modelv1.Problem{{Reason: "Pending", Message: "m", Count: 1, Since: at}}},
			status.Progressing("0 of 2"), status.Progressing("0 of 2; Pending (1 pod, since 2026-01-02T03:00:00Z): m"),
		},
		"the deadline is over": {
			Found{Problems: []modelv1.Problem{{Reason: "NotReady", Message: "m", Count: 1}}},
			status.NewStalled("ProgressDeadlineExceeded", "over"), status.NewStalled("ProgressDeadlineExceeded", "over; NotReady (1 pod): m"),
		},
		"a fetch after the deadline": {
			Found{Problems: []modelv1.Problem{{Reason: "FetchingModel", Message: "m", Count: 1}}},
			status.NewStalled("ProgressDeadlineExceeded", "over"), status.NewStalled("ProgressDeadlineExceeded", "over; FetchingModel (1 pod): m"),
		},
		"refused, as the Deployment says": {
			Found{Problems: []modelv1.Problem{{Reason: "ReplicaFailure", Message: "exceeded quota"}}, Human: true},
			status.NewStalled("ReplicaFailure", "exceeded quota"), status.NewStalled("ReplicaFailure", "exceeded quota"),
		},
	} {
		if got := test.found.Describe(test.r); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func TestMissingNodes(t *testing.T) {
	node := func(name, label string, taints ...corev1.Taint) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: ""}}, Spec: corev1.NodeSpec{Taints: taints}}
	}
	pod := func(name, uid string, nodeName, pinned string, ready corev1.ConditionStatus) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "DaemonSet", UID: "set", Controller: new(true)},
		}}}
		if uid != "" {
			p.OwnerReferences = nil
		}
		p.Spec.NodeName = nodeName
		if pinned != "" {
			p.Spec.Affinity = onNode(pinned)
		}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		return p
	}
	set := &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{}}}
	set.UID, set.Generation, set.Status.ObservedGeneration, set.Status.DesiredNumberScheduled = "set", 1, 1, 6
	set.Spec.Template.Spec.NodeSelector = map[string]string{"logs": ""}
	c := &cluster{namespaces: map[string]bool{}, pods: []corev1.Pod{
		pod("a", "", "n1", "", "True"), pod("b", "", "n2", "", "False"), pod("c", "", "", "n3", "False"), pod("d", "forged", "n9", "", "False"),
	}, nodes: []corev1.Node{
		node("n1", "logs"), node("n2", "logs"), node("n4", "logs"), node("n5", "other"),
		node("n6", "logs", corev1.Taint{Key: "control-plane", Effect: corev1.TaintEffectNoSchedule}),
		node("n7", "logs", corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}),
		node("n8", "logs", corev1.Taint{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}),
	}}
	daemon := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Name: "daemon"}}
	look := func(with func(*Looker)) Found {
		l := NewLooker(c, clocktesting.NewFakePassiveClock(start))
		with(l)
		conditions := []metav1.Condition{{Type: "Ready", Status: "False", LastTransitionTime: metav1.NewTime(start.Add(-time.Hour))}}
		found, _ := l.Look(context.Background(), &Subject{Owner: daemon, Workload: OfDaemonSet(set), Conditions: conditions})
		return found
	}
	if diff := cmp.Diff([]string{"n2", "n3", "n4", "n7", "n8"}, look(func(*Looker) {}).MissingNodes); diff != "" || c.node != 1 {
		t.Errorf("%d lists of nodes (-want +got):\n%s", c.node, diff)
	}
	limited := look(func(l *Looker) { l.WithoutNodes = true })
	if diff := cmp.Diff([]string{"n2", "n3"}, limited.MissingNodes); diff != "" || c.node != 1 || !strings.Contains(limited.note, "limited to namespaces") {
		t.Errorf("limited to namespaces: %d lists of nodes, %q (-want +got):\n%s", c.node, limited.note, diff)
	}
	set.Status.DesiredNumberScheduled = 3 // Each has a pod.
	if diff := cmp.Diff([]string{"n2", "n3"}, look(func(*Looker) {}).MissingNodes); diff != "" || c.node != 1 {
		t.Errorf("each node has a pod: %d lists of nodes (-want +got):\n%s", c.node, diff)
	}
	set.Status.DesiredNumberScheduled = 30
	for i := range 20 {
		c.nodes = append(c.nodes, node(fmt.Sprint("x", i), "logs"))
	}
	if got := look(func(*Looker) {}).MissingNodes; len(got) != maxNodes {
		t.Errorf("%d nodes", len(got))
	}
}

func onNode(name string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name},
		}}}},
	}}}
}
