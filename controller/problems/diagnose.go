// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package problems finds out why the pods of a workload are not available, in the words of the
// cluster. What a pod says is decided by pure functions of the pod and the time; Diagnoser reads
// the pods and remembers when it may read them again.
//
// Pods are never cached or watched: they are the most frequent objects of a cluster, and of most
// of them nothing is of interest. An object that is ready costs no request.
package problems

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

const (
	// firstPause is how long an object must have been not ready before its pods are read, and
	// the shortest time before they are read again. That time doubles up to longestPause while
	// the result stays the same.
	firstPause, longestPause = 15 * time.Second, 5 * time.Minute
	// maxWait is how long a worker waits while the pods of other objects are read, which takes some
	// milliseconds for each, and busyPause the time until the next attempt after that.
	maxWait, busyPause = 500 * time.Millisecond, 5 * time.Second
)

// reading is held while pods are read: one page at a time is in the memory of the process,
// however many objects are not ready.
var reading = semaphore.NewWeighted(1)

// Diagnoser finds out why objects of one kind are not ready. Nil finds nothing.
type Diagnoser struct {
	// Reader reads from the API server.
	Reader client.Reader
	Clock  clock.PassiveClock

	known sync.Map // A *diagnosis by types.NamespacedName.
}

// Subject is an object that may not be ready, with the child that runs its pods.
type Subject struct {
	Owner    client.Object
	Workload Workload
	// Conditions and Problems are those of the status as it is stored.
	Conditions []metav1.Condition
	Problems   []modelv1.Problem
}

// Workload is a child that runs pods: a Deployment or a DaemonSet.
type Workload struct {
	client.Object
	// Observed is true if the cluster has acted on the last change of the workload.
	Observed bool

	selector *metav1.LabelSelector
	// own is the problem of the workload itself, nil if it has none: pods that cannot be created.
	own *modelv1.Problem
}

// OfDeployment returns a Deployment as a Workload.
func OfDeployment(d *appsv1.Deployment) Workload {
	w := Workload{Object: d, Observed: status.IsObserved(d.Generation, d.Status.ObservedGeneration), selector: d.Spec.Selector}
	for _, condition := range d.Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			w.own = &modelv1.Problem{Reason: status.ReasonReplicaFailure, Message: clean(condition.Message), Since: condition.LastTransitionTime}
		}
	}
	return w
}

// OfDaemonSet returns a DaemonSet as a Workload. Its controller says only in events why it cannot
// create a pod.
func OfDaemonSet(d *appsv1.DaemonSet) Workload {
	w := Workload{Object: d, Observed: status.IsObserved(d.Generation, d.Status.ObservedGeneration), selector: d.Spec.Selector}
	nodes := d.Status.DesiredNumberScheduled
	if missing := nodes - d.Status.CurrentNumberScheduled; missing > 0 {
		w.own = &modelv1.Problem{Reason: "PodsMissing", Count: missing, Message: fmt.Sprintf("%d of %d nodes have no pod: a quota, a policy or Pod "+
			"Security may refuse it; the events of the DaemonSet say what (kubectl describe daemonset)", missing, nodes)}
	}
	return w
}

// diagnosis is the last result for a generation of an object that is not ready, and when the next
// one is due.
type diagnosis struct {
	uid        types.UID
	generation int64
	// version is the resourceVersion of the child at the last reconcile.
	version   string
	read, due time.Time
	pause     time.Duration
	result    Result
	// failed is when the object ceased to be ready in this generation, the zero time if it has never been, and alternates
	// whether crashes was true since then.
	failed     time.Time
	alternates bool
}

// alternates is the readiness of an object whose pods are available between two exits of a container.
var alternates = status.Progressing("its pods are available only between two restarts of a container")

// Diagnose returns the readiness of an object whose children have been applied, with the reason
// why it is not ready, and after which time it is to be reconciled again for that, 0 for never.
// Between two reads the result is that of the last one, so that a reconcile for another reason
// writes no other status. skip is true if the pods are not the reason.
func (d *Diagnoser) Diagnose(ctx context.Context, s *Subject, readiness status.Readiness, skip bool) (status.Readiness, []modelv1.Problem, time.Duration) {
	switch {
	case d == nil:
	case readiness.Ready && d.crashes(ctx, s):
		known := d.diagnosisOf(s)
		return known.result.describe(alternates), known.result.Problems, transientPeriod
	case readiness.Ready:
		d.Forget(client.ObjectKeyFromObject(s.Owner))
	case !skip:
		known := d.diagnosisOf(s)
		again := d.update(ctx, s, known)
		if known.alternates && known.result.crashes() && readiness.Reason == status.ReasonProgressing {
			readiness = alternates
		}
		return known.result.describe(readiness), known.result.Problems, again
	}
	return readiness, nil, 0
}

// crashes reports whether an object that is ready again, a moment after it was not, has a container that was restarted
// meanwhile: without probes, one that exits every few seconds is ready between two exits. It reads the pods.
func (d *Diagnoser) crashes(ctx context.Context, s *Subject) bool {
	last, ok := d.known.Load(client.ObjectKeyFromObject(s.Owner))
	if !ok {
		return false
	}
	known, now := last.(*diagnosis), d.Clock.Now()
	if known.uid != s.Owner.GetUID() || known.generation != s.Owner.GetGeneration() || known.failed.IsZero() {
		return false
	}
	if known.alternates && now.Sub(known.read) < firstPause {
		return known.result.crashes()
	}
	if !known.alternates && now.Sub(known.failed) >= transientPeriod || !acquire(ctx) {
		return false
	}
	result, err := d.read(ctx, s)
	reading.Release(1)
	if err != nil || !result.crashes() {
		return false
	}
	known.alternates = true
	known.set(ctx, result, nil, now)
	return true
}

// Forget is called for an object that is ready, or that was deleted.
func (d *Diagnoser) Forget(name types.NamespacedName) { d.known.Delete(name) }

// diagnosisOf returns what is known of an object. A process that has just started knows its status.
func (d *Diagnoser) diagnosisOf(s *Subject) *diagnosis {
	name, uid, generation := client.ObjectKeyFromObject(s.Owner), s.Owner.GetUID(), s.Owner.GetGeneration()
	if last, ok := d.known.Load(name); ok && last.(*diagnosis).uid == uid && last.(*diagnosis).generation == generation {
		return last.(*diagnosis)
	}
	known := &diagnosis{uid: uid, generation: generation, version: s.Workload.GetResourceVersion(), read: d.Clock.Now(), pause: firstPause}
	if ready := meta.FindStatusCondition(s.Conditions, status.ConditionReady); ready != nil && ready.ObservedGeneration == generation {
		if ready.Status == metav1.ConditionTrue {
			known.failed = known.read
		}
		if since := ready.LastTransitionTime.Time; ready.Status != metav1.ConditionTrue && since.Before(known.read) {
			known.read = since
		}
		known.result.Problems = s.Problems
	}
	known.due = known.read.Add(firstPause)
	d.known.Store(name, known)
	return known
}

// update reads the pods if that is due, and returns the time until the next read.
func (d *Diagnoser) update(ctx context.Context, s *Subject, known *diagnosis) time.Duration {
	now := d.Clock.Now()
	if version := s.Workload.GetResourceVersion(); known.version != version { // Its pods may have changed too.
		known.version = version
		if soonest := known.read.Add(firstPause); soonest.Before(known.due) {
			known.due = soonest
		}
	}
	switch {
	case !s.Workload.Observed:
		return 0 // Its next status is an event.
	case now.Before(known.due):
	case !acquire(ctx):
		known.due = now.Add(busyPause)
	default:
		result, err := d.read(ctx, s)
		reading.Release(1)
		known.set(ctx, result, err, now)
	}
	return known.due.Sub(now)
}

// acquire reports whether pods may be read now; then reading is to be released.
func acquire(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	return reading.Acquire(ctx, 1) == nil
}

// set keeps the result of a read. A read that fails changes nothing, but the message says so if another
// attempt would fail too.
func (k *diagnosis) set(ctx context.Context, result Result, err error, now time.Time) {
	switch {
	case apierrors.IsForbidden(err), errors.Is(err, errManySets):
		result = Result{Note: "cannot determine why: " + clean(err.Error())}
	case err != nil:
		log.FromContext(ctx).Info("Reading the pods of an object that is not ready failed", "error", err)
		result = k.result
	}
	result.mergePrevious(k.result.Problems)
	if !k.read.IsZero() { // The first read may have been before the first failure.
		k.pause = min(2*k.pause, longestPause)
	}
	if result.isFetching() || !equality.Semantic.DeepEqual(result, k.result) { // The end of a fetch changes no status of the child.
		k.pause = firstPause
	}
	k.result, k.read, k.due = result, now, now.Add(k.pause)
}

// Result is what is known of the pods of an object that is not ready.
type Result struct {
	// Problems are at most 5.
	Problems []modelv1.Problem
	// Note says what could not be read.
	Note string
}

// describe returns the readiness of an object with the result: the first problem is added to the
// message, and if it needs intervention, the object is stalled for its reason. A Deployment whose
// pods are refused is stalled already, with the same message.
func (r *Result) describe(readiness status.Readiness) status.Readiness {
	if len(r.Problems) > 0 {
		first := &r.Problems[0]
		if first.Reason != status.ReasonReplicaFailure || readiness.Reason != status.ReasonReplicaFailure {
			readiness.AppendMessage(sentence(first))
		}
		switch {
		case needIntervention.Has(first.Reason):
			readiness.Reason, readiness.Stalled, readiness.Reconciling = first.Reason, true, false
		case r.isFetching() && readiness.Reason == status.ReasonProgressing:
			readiness.Reason = first.Reason
		}
	}
	readiness.AppendMessage(r.Note)
	return readiness
}

func (r *Result) crashes() bool {
	return len(r.Problems) > 0 && (r.Problems[0].Reason == reasonCrashLoopBackOff || r.Problems[0].Reason == reasonOOMKilled)
}

func (r *Result) isFetching() bool {
	return len(r.Problems) > 0 && r.Problems[0].Reason == reasonFetchingModel
}

// mergePrevious keeps of the previous result what the same problem has again: since when, because
// a container may have become ready for a moment, and a message that differs only in words that
// may be a time or an identifier: long ones with a digit.
func (r *Result) mergePrevious(previous []modelv1.Problem) {
	stable := func(message string) []string {
		return slices.DeleteFunc(strings.Fields(message), func(word string) bool {
			return len(word) >= 8 && strings.ContainsAny(word, "0123456789")
		})
	}
	for i := range r.Problems {
		p := &r.Problems[i]
		for _, before := range previous {
			if before.Container == p.Container && before.Reason == p.Reason {
				p.Since = earliest(p.Since, before.Since)
				if slices.Equal(stable(p.Message), stable(before.Message)) {
					p.Message = before.Message
				}
			}
		}
	}
}

// sentence returns a problem for the message of a condition.
func sentence(p *modelv1.Problem) string {
	pods := fmt.Sprintf("%d pods", p.Count)
	if p.Count == 1 {
		pods = "1 pod"
	}
	switch {
	case p.Container != "":
		return fmt.Sprintf("%s (container %q of %s): %s", p.Reason, p.Container, pods, p.Message)
	case p.Count > 0:
		return fmt.Sprintf("%s (%s): %s", p.Reason, pods, p.Message)
	}
	return p.Reason + ": " + p.Message
}

// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=list

const (
	// pageSize and maxPages bound a read: an object in etcd has up to 1.5 MiB, and a page is all
	// that is in memory.
	pageSize, maxPages = 10, 50
	// maxProblems is the bound of status.problems, maxFound that of the different problems that are
	// held during a read.
	maxProblems, maxFound = 5, 50
	// AnnotationRevision numbers the pod templates of a Deployment; its controller sets it on each
	// ReplicaSet. The highest is the one that it runs.
	AnnotationRevision = "deployment.kubernetes.io/revision"
	// labelGeneration is the template generation of a DaemonSet's pod.
	labelGeneration = "pod-template-generation"
)

// errManySets reports that the ReplicaSet with the current template of a Deployment is not among those that were read.
var errManySets = fmt.Errorf("only %d of its ReplicaSets were read, and none of them has its current template", pageSize*maxPages)

// read returns what the pods of the current template say. A rollout deletes the others.
func (d *Diagnoser) read(ctx context.Context, s *Subject) (Result, error) {
	found := tally{}
	found.add(s.Workload.own)
	more, err := d.currentPods(ctx, s.Workload, maxPages, func(pod *corev1.Pod) { found.add(ofPod(pod, d.Clock.Now())) })
	result := Result{Problems: found.first()}
	if more {
		result.Note = fmt.Sprintf("only %d of its pods were read", pageSize*maxPages)
	}
	return result, err
}

// CurrentPods returns one page of the pods of a workload that have its current template.
func (d *Diagnoser) CurrentPods(ctx context.Context, w Workload) (pods []corev1.Pod, err error) {
	if !acquire(ctx) {
		return nil, fmt.Errorf("the pods of other objects are being read")
	}
	defer reading.Release(1)
	_, err = d.currentPods(ctx, w, 1, func(pod *corev1.Pod) { pods = append(pods, *pod) })
	return pods, err
}

// currentPods reads the pods of a workload that have its current template, and reports whether there are more.
func (d *Diagnoser) currentPods(ctx context.Context, w Workload, maxPages int, visit func(*corev1.Pod)) (more bool, err error) {
	selector, err := metav1.LabelSelectorAsSelector(w.selector)
	if err != nil {
		return false, fmt.Errorf("the selector of the workload: %w", err)
	}
	uid, current, err := d.template(ctx, w.Object, selector)
	if err != nil {
		return false, err
	}
	return d.pages(ctx, "pods", &corev1.PodList{}, w.GetNamespace(), selector.Add(*current), maxPages, func(obj client.Object) {
		// A label alone does not say whose a pod is: every user who may create pods may set it.
		if owner := metav1.GetControllerOfNoCopy(obj); owner != nil && owner.UID == uid {
			visit(obj.(*corev1.Pod))
		}
	})
}

// template returns the uid of the owner of the pods with the current template, and their label.
func (d *Diagnoser) template(ctx context.Context, w client.Object, selector labels.Selector) (types.UID, *labels.Requirement, error) {
	key, value, uid := labelGeneration, w.GetAnnotations()[appsv1.DeprecatedTemplateGeneration], w.GetUID()
	if _, ok := w.(*appsv1.Deployment); ok {
		key, value, uid = appsv1.DefaultDeploymentUniqueLabelKey, "", ""
		sets, highest := &metav1.PartialObjectMetadataList{}, int64(-1)
		sets.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSetList"))
		more, err := d.pages(ctx, "ReplicaSets", sets, w.GetNamespace(), selector, maxPages, func(set client.Object) {
			revision, err := strconv.ParseInt(set.GetAnnotations()[AnnotationRevision], 10, 64)
			if err == nil && revision > highest && metav1.IsControlledBy(set, w) {
				highest, value, uid = revision, set.GetLabels()[key], set.GetUID()
			}
		})
		// The Deployment has the number of the one that it runs.
		if err == nil && more && strconv.FormatInt(highest, 10) != w.GetAnnotations()[AnnotationRevision] {
			err = errManySets
		}
		if err != nil {
			return "", nil, err
		}
	}
	current, err := labels.NewRequirement(key, selection.Equals, []string{value})
	if err != nil {
		return "", nil, fmt.Errorf("the label of the current template: %w", err)
	}
	return uid, current, nil
}

// pages reads a list page by page, and reports whether there is more than maxPages.
func (d *Diagnoser) pages(
	ctx context.Context, what string, empty client.ObjectList, namespace string, selector labels.Selector, maxPages int,
	visit func(client.Object),
) (more bool, err error) {
	next := ""
	for range maxPages {
		list := empty.DeepCopyObject().(client.ObjectList) // One that is used again keeps what is not in the next page.
		options := &client.ListOptions{Namespace: namespace, LabelSelector: selector, Limit: pageSize, Continue: next}
		if err := d.Reader.List(ctx, list, options); err != nil {
			return false, fmt.Errorf("listing %s: %w", what, err)
		}
		if err := meta.EachListItem(list, func(obj runtime.Object) error {
			visit(obj.(client.Object))
			return nil
		}); err != nil {
			return false, err
		}
		if next = list.GetContinue(); next == "" {
			return false, nil
		}
	}
	return true, nil
}

// tally has the problems that were found. Pods with the same reason for one container have one.
type tally []modelv1.Problem

// add adds a problem, which may be nil. The message of the first of several is quoted.
func (t *tally) add(p *modelv1.Problem) {
	if p == nil {
		return
	}
	for i := range *t {
		if known := &(*t)[i]; known.Container == p.Container && known.Reason == p.Reason {
			known.Count += p.Count
			known.Since = earliest(known.Since, p.Since)
			return
		}
	}
	if len(*t) < maxFound {
		*t = append(*t, *p)
	}
}

// first returns the first problems: those that need intervention, then those of most pods.
func (t tally) first() []modelv1.Problem {
	slices.SortFunc(t, func(a, b modelv1.Problem) int {
		return cmp.Or(cmp.Compare(rank(a.Reason), rank(b.Reason)), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Container, b.Container), cmp.Compare(a.Reason, b.Reason))
	})
	return t[:min(len(t), maxProblems)]
}

// rank is the place of a reason among others.
func rank(reason string) int {
	switch {
	case reason == status.ReasonReplicaFailure:
		return 0
	case needIntervention.Has(reason):
		return 1
	}
	return 2
}

// earliest returns the earlier one of two times; one that is not set does not count.
func earliest(a, b metav1.Time) metav1.Time {
	if a.IsZero() || !b.IsZero() && b.Before(&a) {
		return b
	}
	return a
}
