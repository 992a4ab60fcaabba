// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

const (
	// firstPause is how long an object must have been not ready before its pods are listed, and
	// the shortest time between two lists, other than those of the next pause.
	firstPause = 15 * time.Second
	// fetchPause is the time between two lists while a model is being fetched, in the first minute
	// in which the object is not ready: most errors, such as a wrong name or hash, come soon, and
	// status is to say so within 30 s.
	fetchPause, fetchBegins = 5 * time.Second, time.Minute
	// longestPause is the time between two lists of an object whose problems stay the same.
	longestPause = 5 * time.Minute
)

// schedule is when the pods of an object are listed, and what of the last list is not in its
// status. A process that has just started has none, and makes one from the status.
type schedule struct {
	uid        types.UID
	generation int64
	// due is when the pods are listed next. It is at least firstPause after from: the last
	// list, the last change of the spec, or the time from which on the object is not ready.
	from, due time.Time
	pause     time.Duration
	// began is the last change of the spec, or the time from which on the object is not ready.
	began time.Time
	// workload is the state of the Deployment or DaemonSet, seen is the result of the last list.
	workload, seen string
	// kept is true if the problems in status are those of this generation.
	kept bool
	// human and note are those of the last list.
	human bool
	note  string
}

// newSchedule returns the schedule of an object that has none in memory.
func newSchedule(s *Subject, now time.Time) *schedule {
	from := now
	ready := meta.FindStatusCondition(s.Conditions, status.ConditionReady)
	if ready != nil && ready.Status != metav1.ConditionTrue && ready.LastTransitionTime.Time.Before(now) {
		from = ready.LastTransitionTime.Time
	}
	out := &schedule{uid: s.Owner.GetUID(), generation: s.Owner.GetGeneration(), workload: s.Workload.state()}
	out.restart(from)
	if ready == nil || ready.ObservedGeneration != out.generation || len(s.Problems) == 0 {
		return out
	}
	out.kept = true
	out.human = meta.IsStatusConditionTrue(s.Conditions, status.ConditionStalled) && ready.Reason == s.Problems[0].Reason
	return out
}

// restart begins with the shortest pause.
func (c *schedule) restart(from time.Time) {
	c.from, c.began, c.pause = from, from, firstPause
	// Times in status are in whole seconds: "longer than" counts from the next one.
	c.due = from.Truncate(time.Second).Add(firstPause + time.Second)
}

// update takes into account what has changed since the last reconcile.
func (c *schedule) update(s *Subject, now time.Time) {
	if generation := s.Owner.GetGeneration(); c.generation != generation {
		c.generation, c.kept, c.human, c.note, c.seen = generation, false, false, "", ""
		c.restart(now)
	}
	if state := s.Workload.state(); c.workload != state {
		c.workload = state
		c.advance(now)
	}
}

// advance makes the next list due as soon as it may be.
func (c *schedule) advance(now time.Time) {
	soonest := c.from.Add(firstPause)
	if soonest.Before(now) {
		soonest = now
	}
	if soonest.Before(c.due) {
		c.due = soonest
	}
}

// record sets the time of the next list after one that found something.
func (c *schedule) record(found *Found, now time.Time) {
	seen := found.essence()
	switch {
	case found.isFetching() && now.Sub(c.began) < fetchBegins:
		c.pause = fetchPause
	case found.isFetching(): // When a fetch ends with an error, the status of the workload does not change.
		c.pause = firstPause
	case c.kept && c.seen == seen:
		c.pause = min(2*c.pause, longestPause)
	default:
		c.pause = firstPause
	}
	c.seen, c.kept, c.human, c.note = seen, true, found.Human, found.note
	c.from, c.due = now, now.Add(c.pause)
}

// postpone sets the time of the next list after one that failed.
func (c *schedule) postpone(now time.Time) {
	c.from, c.due = now, now.Add(c.pause)
	c.pause = min(2*c.pause, longestPause)
}

// essence returns what must be the same for two results to be the same: numbers in messages,
// and the times since when, need not be.
func (f *Found) essence() string {
	var out strings.Builder
	for _, p := range f.Problems {
		fmt.Fprintf(&out, "%s %s %d %s\n", p.Reason, p.Container, p.Count, letters(p.Message))
	}
	fmt.Fprintln(&out, f.Human, f.note, f.MissingNodes)
	return out.String()
}

// state returns what of a workload's status makes another look worthwhile.
func (w Workload) state() string {
	if w.daemonSet != nil {
		s := &w.daemonSet.Status
		return fmt.Sprint(w.daemonSet.UID, w.daemonSet.Generation, s.ObservedGeneration, s.DesiredNumberScheduled, s.CurrentNumberScheduled,
			s.NumberReady, s.UpdatedNumberScheduled, s.NumberAvailable, s.NumberMisscheduled)
	}
	s := &w.deployment.Status
	failure := ""
	for _, condition := range s.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure {
			failure = string(condition.Status)
		}
	}
	return fmt.Sprint(w.deployment.UID, w.deployment.Generation, s.ObservedGeneration, s.Replicas, s.UpdatedReplicas, s.ReadyReplicas,
		s.AvailableReplicas, failure)
}

// IsObserved reports whether the cluster has acted on the last change of the workload.
func (w Workload) IsObserved() bool {
	if w.daemonSet != nil {
		return status.IsObserved(w.daemonSet.Generation, w.daemonSet.Status.ObservedGeneration)
	}
	return status.IsObserved(w.deployment.Generation, w.deployment.Status.ObservedGeneration)
}
