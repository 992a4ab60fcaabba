// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/randfill"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/test/golden"
)

// read is what is read of a workload at one time.
type read struct {
	Now        metav1.Time        `json:"now"`
	Deployment *appsv1.Deployment `json:"deployment"`
	DaemonSet  *appsv1.DaemonSet  `json:"daemonSet"`
	Pods       []corev1.Pod       `json:"pods"`
}

// diagnosed is what a golden file has.
type diagnosed struct {
	NeedsIntervention bool              `json:"needsIntervention"`
	Problems          []modelv1.Problem `json:"problems"`
}

func (r *read) problems() []modelv1.Problem {
	var workload Workload
	if r.DaemonSet != nil {
		workload = OfDaemonSet(r.DaemonSet)
	} else {
		workload = OfDeployment(r.Deployment)
	}
	found := tally{}
	found.add(workload.own)
	for i := range r.Pods {
		found.add(ofPod(&r.Pods[i], r.Now.Time))
	}
	return found.first()
}

// Each testdata/NAME.yaml has pods as kubelet, the scheduler and the API server write them;
// NAME.golden.yaml has the problems. "go test ./controller/... -update" rewrites the latter.
func TestResult(t *testing.T) {
	golden.Run(t, func(r *read) ([]any, error) {
		found := r.problems()
		return []any{diagnosed{len(found) > 0 && needIntervention.Has(found[0].Reason), found}}, nil
	})
}

// A problem whose message differs only in what varies has the message of the previous read.
func TestMergePrevious(t *testing.T) {
	t.Parallel()
	const message = "exit code 1: 03:04:05.123 read udp 10.244.0.5:51423->10.96.0.10:53: timeout of 6a1e2c55-0000-4000-8000-000000000000"
	for next, same := range map[string]bool{
		"exit code 1: 04:04:05.124 read udp 10.244.0.5:51424->10.96.0.10:53: timeout of 6a1e2c55-0000-4000-8000-000000000001": true,
		"exit code 2: 03:04:05.123 read udp 10.244.0.5:51423->10.96.0.10:53: timeout of 6a1e2c55-0000-4000-8000-000000000000": false,
		"exit code 1: 03:04:05.123 read udp 10.244.0.5:51423->10.96.0.10:53: refused of 6a1e2c55-0000-4000-8000-000000000000": false,
	} {
		since, now := metav1.Unix(1e9, 0), metav1.Unix(1e9+9, 0)
		r := Result{Problems: []modelv1.Problem{{Reason: "CrashLoopBackOff", Message: next, Since: now}}}
		r.mergePrevious([]modelv1.Problem{{Reason: "CrashLoopBackOff", Message: message, Since: since}})
		if got := r.Problems[0]; (got.Message == message) != same || !got.Since.Equal(&since) {
			t.Errorf("%q: %+v", next, got)
		}
	}
}

// Whatever clients write into the status of pods, the schema accepts the problems.
func TestAnyPod(t *testing.T) {
	t.Parallel()
	fill := randfill.NewWithSeed(1).NilChance(.2).NumElements(0, 4).MaxDepth(12)
	for range 60 {
		r := read{Deployment: &appsv1.Deployment{}, Pods: make([]corev1.Pod, 20)}
		for i := range r.Pods {
			fill.Fill(&r.Pods[i].Status)
			fill.Fill(&r.Pods[i].Spec.Containers)
			r.Pods[i].Spec.NodeName = "node"
		}
		r.Now = metav1.Now()
		found := r.problems()
		if len(found) > maxProblems {
			t.Fatalf("%d problems", len(found))
		}
		for _, p := range found {
			if !word.MatchString(p.Reason) || len(p.Message) > 3*maxMessage || p.Count < 0 || !utf8.ValidString(p.Message) {
				t.Errorf("the API server would refuse %+v", p)
			}
			for _, letter := range p.Message {
				if unicode.IsControl(letter) {
					t.Errorf("%q has a control character", p.Message)
				}
			}
			if _, err := json.Marshal(p); err != nil {
				t.Error(err)
			}
		}
	}
}

// start is when the object is created. Times in status are in whole seconds.
var start = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// cluster is a reader of the pods and ReplicaSets of one namespace, page by page. It counts the
// lists.
type cluster struct {
	client.Reader
	pods  []corev1.Pod
	sets  []metav1.PartialObjectMetadata
	err   error
	lists int
	// largest is the largest page.
	largest int
}

func (c *cluster) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	if o.Namespace != "team" || o.Limit == 0 {
		return fmt.Errorf("a list without a bound: %+v", o)
	}
	c.lists++
	var size int
	switch into := into.(type) {
	case *corev1.PodList:
		into.Items, into.Continue = page(c.pods, func(p corev1.Pod) map[string]string { return p.Labels }, &o)
		size = len(into.Items)
	case *metav1.PartialObjectMetadataList:
		into.Items, into.Continue = page(c.sets, func(s metav1.PartialObjectMetadata) map[string]string { return s.Labels }, &o)
		size = len(into.Items)
	}
	c.largest = max(c.largest, size)
	return c.err
}

func page[T any](all []T, labelsOf func(T) map[string]string, o *client.ListOptions) (items []T, next string) {
	from, _ := strconv.Atoi(o.Continue)
	for i := from; i < len(all); i++ {
		if int64(len(items)) == o.Limit {
			return items, strconv.Itoa(i)
		}
		if o.LabelSelector.Matches(labels.Set(labelsOf(all[i]))) {
			items = append(items, all[i])
		}
	}
	return items, ""
}

// object is a ModelBox that is not ready, with its Deployment, and a Diagnoser.
type object struct {
	*modelv1.ModelBox
	*cluster
	deployment *appsv1.Deployment
	clock      *clocktesting.FakePassiveClock
	diagnoser  *Diagnoser
	// writes are how often the status was written.
	writes int
	again  time.Duration
}

// newObject returns an object whose Deployment runs the template "new", and ran "old" before.
func newObject() *object {
	o := &object{
		ModelBox: &modelv1.ModelBox{}, cluster: &cluster{}, clock: clocktesting.NewFakePassiveClock(start),
		deployment: &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{}}},
	}
	o.Name, o.Namespace, o.UID, o.Generation = "box", "team", "1", 1
	o.deployment.Name, o.deployment.UID, o.deployment.Generation, o.deployment.Status.ObservedGeneration = "box", "deployment", 1, 1
	o.sets = []metav1.PartialObjectMetadata{replicaSet("new", "10", "deployment"), replicaSet("old", "9", "deployment"), replicaSet("foreign", "99", "another")}
	o.restartProcess()
	return o
}

func (o *object) restartProcess() { o.diagnoser = &Diagnoser{Reader: o.cluster, Clock: o.clock} }

func replicaSet(hash, revision string, owner types.UID) metav1.PartialObjectMetadata {
	set := metav1.PartialObjectMetadata{}
	set.UID, set.Labels = types.UID(hash), map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash}
	set.Annotations = map[string]string{AnnotationRevision: revision}
	set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "box", UID: owner, Controller: new(true)}}
	return set
}

// waiting returns a pod of a ReplicaSet whose container waits.
func waiting(name, hash, reason, message string) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "team", CreationTimestamp: metav1.NewTime(start), Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "box-" + hash, UID: types.UID(hash), Controller: new(true)}},
	}}
	pod.Spec.NodeName = "node"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "box", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message},
	}}}
	return pod
}

func badImage(name string) corev1.Pod { return waiting(name, "new", "ErrImagePull", "not found") }

// reconcile does what the kinds do with the result, and returns the readiness.
func (o *object) reconcile(ready bool) status.Readiness {
	before := o.Status.DeepCopy()
	readiness := status.Progressing("0 of 1 pods are available")
	if ready {
		readiness = status.NewReady("1 of 1 pods are available")
	}
	readiness, problems, again := o.diagnoser.Diagnose(context.Background(), &Subject{
		Owner: o.ModelBox, Workload: OfDeployment(o.deployment), Conditions: o.Status.Conditions, Problems: o.Status.Problems,
	}, readiness, false)
	o.Status.Problems, o.again = problems, again
	readiness.SetConditions(&o.Status.Conditions, o.Generation, metav1.NewTime(o.clock.Now().Truncate(time.Second)))
	if !cmp.Equal(before, &o.Status) {
		o.writes++
	}
	return readiness
}

// after lets time pass, and reconciles.
func (o *object) after(d time.Duration) status.Readiness {
	o.clock.SetTime(o.clock.Now().Add(d))
	return o.reconcile(false)
}

// run lets time pass, and reconciles as often as the result says, and at these times.
func (o *object) run(d time.Duration) {
	end := o.clock.Now().Add(d)
	for o.again > 0 && !o.clock.Now().Add(o.again).After(end) {
		o.after(o.again)
	}
	o.clock.SetTime(end)
}

func TestPodsAreReadWhenTheObjectHasNotBeenReadyForLong(t *testing.T) {
	o := newObject()
	o.pods = []corev1.Pod{badImage("a")}
	o.reconcile(false)
	for range 15 {
		if o.lists != 0 || o.again <= 0 || o.again > 16*time.Second {
			t.Fatalf("%d lists after %s, again after %s", o.lists, o.clock.Since(start), o.again)
		}
		o.after(time.Second)
	}
	got := o.after(time.Second)
	want := status.Readiness{Stalled: true, Reason: "ImagePullBackOff", Message: `0 of 1 pods are available; ImagePullBackOff (container "box" of 1 pod): not found`}
	if diff := cmp.Diff(want, got); diff != "" || o.lists != 2 {
		t.Errorf("%d lists (-want +got):\n%s", o.lists, diff)
	}
	if o.reconcile(true); len(o.Status.Problems) > 0 || o.again != 0 {
		t.Errorf("a ready object has the problems %v, and is reconciled after %s", o.Status.Problems, o.again)
	}
}

// crashing returns a pod whose container has exited n times, and runs since then.
func crashing(n int32, since time.Time) corev1.Pod {
	pod := waiting("a", "new", "", "")
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "box", Ready: true, RestartCount: n, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(since)}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.NewTime(since)}},
	}}
	return pod
}

// A container without probes that exits every few seconds is ready between two exits. Its object is
// not, until the container has run for half a minute; nothing is read of one that was never ready,
// or was not for long.
func TestReadyDoesNotAlternate(t *testing.T) {
	for name, test := range map[string]struct {
		// every is the time between two exits, after which the object is not ready for two seconds.
		every time.Duration
		// ready is whether it has been ready before.
		ready         bool
		writes, lists int
	}{
		"every 5 s":             {every: 5 * time.Second, ready: true, writes: 2, lists: 2 * 10},
		"every 12 s":            {every: 12 * time.Second, ready: true, writes: 2, lists: 2 * 10},
		"once":                  {every: time.Hour, ready: true, writes: 3, lists: 2 * 4},
		"a start, without exit": {every: time.Hour, writes: 2},
	} {
		t.Run(name, func(t *testing.T) {
			o := newObject()
			if test.ready {
				o.pods = []corev1.Pod{crashing(0, start.Add(-time.Hour))}
				o.reconcile(true)
			}
			o.writes, o.lists = 0, 0
			var last status.Readiness
			exits, since := int32(0), start
			for second := range 150 {
				if test.ready && time.Duration(second)*time.Second%test.every == 0 {
					exits, since = exits+1, o.clock.Now()
					o.pods = []corev1.Pod{crashing(exits, since)}
				}
				last = o.reconcile(o.clock.Since(since) >= 2*time.Second)
				o.clock.SetTime(o.clock.Now().Add(time.Second))
			}
			if crashes := test.every < time.Minute; last.Ready == crashes || crashes && last.Reason != "CrashLoopBackOff" {
				t.Errorf("it ends as %+v", last)
			}
			if o.writes > test.writes || o.lists > test.lists {
				t.Errorf("%d writes and %d lists, want at most %d and %d", o.writes, o.lists, test.writes, test.lists)
			}
		})
	}
}

func TestTheSameProblemsAreReadMoreAndMoreSeldom(t *testing.T) {
	o := newObject()
	o.pods = []corev1.Pod{badImage("a")}
	o.reconcile(false)
	o.run(20 * time.Second)
	writes, lists := o.writes, o.lists
	o.run(time.Hour)
	if reads := (o.lists - lists) / 2; o.writes != writes || reads < 10 || reads > 18 {
		t.Errorf("%d reads and %d writes in an hour", reads, o.writes-writes)
	}
	// A change of the Deployment is a reason to read again, but not more than each 15 s.
	lists = o.lists
	for i := range 60 {
		o.deployment.ResourceVersion = strconv.Itoa(i)
		o.after(time.Second)
	}
	if reads := (o.lists - lists) / 2; reads < 3 || reads > 5 {
		t.Errorf("%d reads in a minute of changes", reads)
	}
	// A new process knows the status.
	o.restartProcess()
	writes = o.writes
	if o.reconcile(false); o.writes != writes {
		t.Errorf("a new process writes another status: %+v", o.Status)
	}
	// A new spec: the problems were those of the old one.
	o.Generation++
	if got := o.reconcile(false); got.Stalled || len(o.Status.Problems) > 0 {
		t.Errorf("a new spec has the readiness %+v", got)
	}
}

// The current template is the one with the highest revision, whatever pod is the youngest.
func TestOnlyTheCurrentTemplateIsRead(t *testing.T) {
	old := waiting("z-young", "old", "ErrImagePull", "of the old template")
	old.CreationTimestamp = metav1.NewTime(start.Add(time.Minute))
	for name, test := range map[string]struct {
		pods    []corev1.Pod
		want    string
		stalled bool
	}{
		"both":         {[]corev1.Pod{old, badImage("a")}, `container "box" of 1 pod): not found`, true},
		"only old":     {[]corev1.Pod{old}, "0 of 1 pods are available", false},
		"a foreign":    {[]corev1.Pod{waiting("f", "foreign", "ErrImagePull", "of another"), badImage("a")}, "not found", true},
		"only foreign": {[]corev1.Pod{waiting("f", "foreign", "ErrImagePull", "of another")}, "0 of 1 pods are available", false},
	} {
		o := newObject()
		o.pods = test.pods
		o.reconcile(false)
		got := o.after(time.Minute)
		if !strings.HasSuffix(got.Message, test.want) || got.Stalled != test.stalled {
			t.Errorf("%s: the readiness is %+v, want %q", name, got, test.want)
		}
	}
	o := newObject()
	for i := range 525 {
		o.pods = append(o.pods, waiting(fmt.Sprintf("a%d", i), "old", "ErrImagePull", "of the old template"))
	}
	for i := range 100 {
		o.pods = append(o.pods, badImage(fmt.Sprintf("b%d", i)))
	}
	o.reconcile(false)
	if got := o.after(time.Minute); !strings.HasSuffix(got.Message, `container "box" of 100 pods): not found`) || o.largest != pageSize {
		t.Errorf("the readiness is %+v, the largest page %d", got, o.largest)
	}
	if o.lists != 1+10 {
		t.Errorf("%d lists", o.lists)
	}
}

// However many pods there are, a read has a bound, and says so.
func TestReadsAreBounded(t *testing.T) {
	o := newObject()
	for i := range 2000 {
		o.pods = append(o.pods, waiting(fmt.Sprint("p", i), "new", "ErrImagePull", fmt.Sprint("pod ", i)))
	}
	o.reconcile(false)
	if got := o.after(time.Minute); !strings.HasSuffix(got.Message, "only 500 of its pods were read") || o.lists != 1+maxPages || o.Status.Problems[0].Count != 500 {
		t.Errorf("%d lists, problems %+v, readiness %+v", o.lists, o.Status.Problems, got)
	}
}

// Of more ReplicaSets than are read, the current one may be among those that are not, and the
// message says so.
func TestManyReplicaSets(t *testing.T) {
	for revision, want := range map[string]string{
		"3000": "cannot determine why: only 500 of its ReplicaSets were read, and none of them has its current template",
		"499":  `container "box" of 1 pod): not found`,
	} {
		o := newObject()
		o.sets, o.pods = nil, []corev1.Pod{badImage("a")}
		for i := range 600 {
			o.sets = append(o.sets, replicaSet(fmt.Sprint("old", i), strconv.Itoa(i), "deployment"))
		}
		o.sets[499] = replicaSet("new", "499", "deployment")
		o.deployment.Annotations = map[string]string{AnnotationRevision: revision}
		o.reconcile(false)
		if got := o.after(time.Minute); !strings.HasSuffix(got.Message, want) {
			t.Errorf("revision %s: the readiness is %+v, want %q", revision, got, want)
		}
	}
}

func TestOneReadAtATimeInTheProcess(t *testing.T) {
	o := newObject()
	o.pods = []corev1.Pod{badImage("a")}
	o.reconcile(false)
	if !reading.TryAcquire(1) {
		t.Fatal("pods are read")
	}
	o.after(time.Minute)
	if o.lists != 0 || o.again != busyPause {
		t.Errorf("%d lists, again after %s", o.lists, o.again)
	}
	reading.Release(1)
	if got := o.after(busyPause); got.Reason != "ImagePullBackOff" {
		t.Errorf("readiness %+v", got)
	}
}

func TestAReadThatFails(t *testing.T) {
	o := newObject()
	o.pods = []corev1.Pod{badImage("a")}
	o.reconcile(false)
	want := o.after(time.Minute)
	o.err = errors.New("timeout")
	lists := o.lists
	o.run(time.Hour)
	if got := o.reconcile(false); got != want || o.lists-lists > 20 {
		t.Errorf("%d lists, readiness %+v, want %+v", o.lists-lists, got, want)
	}
	o.err = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
	o.run(time.Hour)
	if got := o.reconcile(false); !strings.HasSuffix(got.Message, "cannot determine why: listing ReplicaSets: pods is forbidden: no") || got.Stalled {
		t.Errorf("readiness %+v", got)
	}
}

func TestADaemonSetsTemplate(t *testing.T) {
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}, Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{}}}
	set.UID, set.Generation, set.Status.ObservedGeneration = "set", 3, 3
	set.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: "3"}
	c := &cluster{}
	for _, generation := range []string{"2", "3"} {
		pod := waiting("pod-"+generation, "", "ErrImagePull", "of generation "+generation)
		pod.Labels = map[string]string{labelGeneration: generation}
		pod.OwnerReferences[0].UID, pod.Spec.NodeName = "set", "node-"+generation
		c.pods = append(c.pods, pod)
	}
	d := &Diagnoser{Reader: c, Clock: clocktesting.NewFakePassiveClock(start)}
	owner := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}}
	got, err := d.read(t.Context(), &Subject{Owner: owner, Workload: OfDaemonSet(set)})
	if err != nil || len(got.Problems) != 1 || got.Problems[0].Message != "of generation 3" {
		t.Errorf("%+v, %v", got, err)
	}
}
