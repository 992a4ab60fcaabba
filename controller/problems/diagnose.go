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
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

	// own is the problem of the workload itself, nil if it has none: pods that cannot be created.
	own *modelv1.Problem
}

// OfDeployment returns a Deployment as a Workload.
func OfDeployment(d *appsv1.Deployment) Workload {
	w := Workload{Object: d, Observed: status.IsObserved(d.Generation, d.Status.ObservedGeneration)}
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
	w := Workload{Object: d, Observed: status.IsObserved(d.Generation, d.Status.ObservedGeneration)}
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
	// failed is when the object ceased to be ready in this generation, the zero time if it has
	// never been, and alternates whether crashes was true since then.
	failed     time.Time
	alternates bool
}

// alternates is the readiness of an object whose pods are available between two exits of a
// container.
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

// crashes reports whether an object that is ready again, a moment after it was not, has a container
// that was restarted meanwhile: without probes, one that exits every few seconds is ready between
// two exits. It reads the pods.
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

// set keeps the result of a read. A read that fails changes nothing, but the message says so if
// another attempt would fail too.
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
