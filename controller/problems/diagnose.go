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
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

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
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

const (
	// firstPause is how long an object must have been not ready before its pods are read, and
	// the shortest time before they are read again. That time doubles up to longestPause while
	// the result stays the same.
	firstPause, longestPause = 15 * time.Second, 5 * time.Minute
	// busyPause is the time until the next attempt while the pods of another object are read.
	busyPause = 5 * time.Second
	// maxNote bounds an error in the message of a condition.
	maxNote = 512
)

// reading is held while pods are read: one page at a time is in the memory of the process,
// however many objects are not ready.
var reading sync.Mutex

// Diagnoser finds out why objects of one kind are not ready. Nil finds nothing.
type Diagnoser struct {
	// Reader reads from the API server.
	Reader client.Reader
	Clock  clock.PassiveClock

	mu    sync.Mutex
	known map[types.NamespacedName]*diagnosis
}

// Subject is an object that may not be ready, with the child that runs its pods.
type Subject struct {
	Owner    client.Object
	Workload Workload
	// Conditions and Last are those of the status as it is stored.
	Conditions []metav1.Condition
	Last       Result
}

// diagnosis is the last result for an object that is not ready, and when the next one is due.
type diagnosis struct {
	uid        types.UID
	generation int64
	// version is the resourceVersion of the child at the last reconcile.
	version string
	read    time.Time
	due     time.Time
	pause   time.Duration
	result  Result
}

// Diagnose returns the readiness of an object whose children have been applied, with the reason
// why it is not ready, and after which time it is to be reconciled again for that, 0 for never.
// Between two reads the result is that of the last one, so that a reconcile for another reason
// writes no other status. skip is true if the pods are not the reason.
func (d *Diagnoser) Diagnose(ctx context.Context, s *Subject, readiness status.Readiness, skip bool) (status.Readiness, Result, time.Duration) {
	switch {
	case d == nil:
	case readiness.Ready:
		d.Forget(client.ObjectKeyFromObject(s.Owner))
	case !skip:
		known := d.diagnosisOf(s)
		again := d.update(ctx, s, known)
		return known.result.Describe(readiness), known.result, again
	}
	return readiness, Result{}, 0
}

// Forget is called for an object that is ready, or that was deleted.
func (d *Diagnoser) Forget(name types.NamespacedName) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.known, name)
}

// diagnosisOf returns what is known of an object. A process that has just started knows its status.
func (d *Diagnoser) diagnosisOf(s *Subject) *diagnosis {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, name := d.Clock.Now(), client.ObjectKeyFromObject(s.Owner)
	known := d.known[name]
	switch {
	case known == nil || known.uid != s.Owner.GetUID():
		known = &diagnosis{uid: s.Owner.GetUID(), generation: s.Owner.GetGeneration(), version: s.Workload.version(), pause: firstPause}
		known.due = notReadySince(s.Conditions, now).Add(firstPause + time.Second) // Times in status are in whole seconds.
		if ready := meta.FindStatusCondition(s.Conditions, status.ConditionReady); ready != nil && ready.ObservedGeneration == known.generation {
			known.result = s.Last
			known.result.NeedsIntervention = len(s.Last.Problems) > 0 && ready.Reason == s.Last.Problems[0].Reason &&
				meta.IsStatusConditionTrue(s.Conditions, status.ConditionStalled)
		}
	case known.generation != s.Owner.GetGeneration():
		*known = diagnosis{uid: known.uid, generation: s.Owner.GetGeneration(), version: s.Workload.version(), pause: firstPause, due: now.Add(firstPause)}
	}
	if d.known == nil {
		d.known = map[types.NamespacedName]*diagnosis{}
	}
	d.known[name] = known
	return known
}

func notReadySince(conditions []metav1.Condition, now time.Time) time.Time {
	ready := meta.FindStatusCondition(conditions, status.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue || ready.LastTransitionTime.After(now) {
		return now
	}
	return ready.LastTransitionTime.Time
}

// update reads the pods if that is due, and returns the time until the next read.
func (d *Diagnoser) update(ctx context.Context, s *Subject, known *diagnosis) time.Duration {
	now := d.Clock.Now()
	if version := s.Workload.version(); known.version != version { // Its pods may have changed too.
		known.version = version
		if soonest := known.read.Add(firstPause); !known.read.IsZero() && soonest.Before(known.due) {
			known.due = soonest
		}
	}
	switch {
	case !s.Workload.IsObserved():
		return 0 // Its next status is an event.
	case now.Before(known.due):
	case !reading.TryLock():
		known.due = now.Add(busyPause)
	default:
		result, err := d.read(ctx, s)
		reading.Unlock()
		known.set(ctx, result, err, now)
	}
	return known.due.Sub(now)
}

// set keeps the result of a read. A read that fails changes nothing, but the message says so if it
// is forbidden.
func (k *diagnosis) set(ctx context.Context, result Result, err error, now time.Time) {
	switch {
	case apierrors.IsForbidden(err):
		result = Result{Note: rules.Cut("cannot determine why: "+oneLine(err.Error()), maxNote)}
	case err != nil:
		log.FromContext(ctx).Info("Reading the pods of an object that is not ready failed", "error", err)
		result = k.result
	}
	result.mergePrevious(k.result.Problems)
	switch {
	case result.isFetching() || !equality.Semantic.DeepEqual(result, k.result): // The end of a fetch changes no status of the child.
		k.pause = firstPause
	case !k.read.IsZero():
		k.pause = min(2*k.pause, longestPause)
	}
	k.result, k.read, k.due = result, now, now.Add(k.pause)
}

// Result is what is known of the pods of an object that is not ready.
type Result struct {
	// Problems are at most 5.
	Problems []modelv1.Problem
	// MissingNodes are nodes whose pod of a DaemonSet is not ready, at most 10.
	MissingNodes []string
	// NeedsIntervention is true if the first problem cannot pass without a change from outside.
	NeedsIntervention bool
	// Note says what could not be read.
	Note string
}

// Describe returns the readiness of an object with the result: the first problem is added to the
// message, and if it needs intervention, the object is stalled for its reason. A Deployment whose
// pods are refused is stalled already, with the same message.
func (r *Result) Describe(readiness status.Readiness) status.Readiness {
	if len(r.Problems) > 0 {
		first := &r.Problems[0]
		if first.Reason != reasonReplicaFailure || readiness.Reason != status.ReasonReplicaFailure {
			readiness.AppendMessage(sentence(first, r.NeedsIntervention))
		}
		switch {
		case r.NeedsIntervention:
			readiness.Reason, readiness.Stalled, readiness.Reconciling = first.Reason, true, false
		case r.isFetching() && readiness.Reason == status.ReasonProgressing:
			readiness.Reason = first.Reason
		}
	}
	readiness.AppendMessage(r.Note)
	return readiness
}

func (r *Result) isFetching() bool {
	return len(r.Problems) > 0 && r.Problems[0].Reason == reasonFetchingModel
}

// mergePrevious keeps of the previous result what the same problem has again: since when, because
// a container may have become ready for a moment, and a message that differs only in times, ports
// and identifiers.
func (r *Result) mergePrevious(previous []modelv1.Problem) {
	for i := range r.Problems {
		p := &r.Problems[i]
		for j := range previous {
			if before := &previous[j]; before.Container == p.Container && before.Reason == p.Reason {
				p.Since = earliest(p.Since, before.Since)
				if slices.Equal(stable(p.Message), stable(before.Message)) {
					p.Message = before.Message
				}
			}
		}
	}
}

// stable returns the words of a message without those that may be a time or an identifier: long
// ones with a digit.
func stable(message string) []string {
	return slices.DeleteFunc(strings.Fields(message), func(word string) bool {
		return len(word) >= 8 && strings.ContainsAny(word, "0123456789")
	})
}

// sentence returns a problem for the message of a condition. For one that may pass by itself
// it says since when.
func sentence(p *modelv1.Problem, needsIntervention bool) string {
	pods := fmt.Sprintf("%d pods", p.Count)
	if p.Count == 1 {
		pods = "1 pod"
	}
	details := ""
	switch {
	case p.Container != "":
		details = fmt.Sprintf("container %q of %s", p.Container, pods)
	case p.Count > 0:
		details = pods
	}
	if !needsIntervention && !p.Since.IsZero() {
		if details != "" {
			details += ", "
		}
		details += "since " + p.Since.UTC().Format(time.RFC3339)
	}
	if details != "" {
		details = " (" + details + ")"
	}
	return p.Reason + details + ": " + p.Message
}
