// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// NewObservation returns an Observation with what the stored conditions of the owner say.
func NewObservation(owner []metav1.Condition) Observation {
	o := Observation{New: len(owner) == 0}
	if ready := meta.FindStatusCondition(owner, status.ConditionReady); ready != nil && ready.Status != metav1.ConditionTrue {
		o.NotReadySince = ready.LastTransitionTime.Time
	}
	return o
}

// Observation is what a reconcile observes of the rollouts of a child, and of its owner before
// its status is changed.
type Observation struct {
	// Child is the uid of the child. Revision identifies its pod template as far as the cluster
	// has acted on it, and is empty if it has not yet.
	Child    types.UID
	Revision string
	// InProgress is true if the status of the child proves that a rollout is in progress.
	InProgress bool
	// Complete is true if every pod runs the current template and is available, and no old
	// one is left.
	Complete bool
	// New is true if the owner has no status yet.
	New bool
	// NotReadySince is since when Ready has not been True in the stored status of the owner. It
	// is zero if Ready is True.
	NotReadySince time.Time
	// CompletedAt is when the last rollout of the child was complete, as the cluster reports it.
	// It is zero if that is not known.
	CompletedAt time.Time
}

// state is what is known of the rollouts of one owner.
type state struct {
	child    types.UID
	revision string
	// begun is when the rollout began that is in progress, zero if there is none.
	begun time.Time
	// presumed is true if begun is only the time since when the owner has not been ready, which
	// may have another reason than a rollout.
	presumed bool
	// unannounced is true if there is no event for the begin of the rollout yet.
	unannounced bool
}

// first returns the state of an owner that this process has not observed before. If the owner
// has not been ready in its stored status, another process has emitted the event for the begin
// of its rollout.
func first(o Observation, now time.Time) state {
	s := state{child: o.Child, revision: o.Revision}
	switch {
	case o.New:
		s.begin(now)
	case !o.NotReadySince.IsZero():
		s.begun, s.presumed = o.NotReadySince, !o.InProgress
	case o.InProgress:
		s.begin(now)
	}
	return s
}

// next returns the state after another observation.
func (s state) next(o Observation, now time.Time) state {
	if o.Child == s.child && o.Revision == "" {
		o.Revision = s.revision
	}
	changed := o.Child != s.child || s.revision != "" && o.Revision != s.revision
	if changed || o.InProgress && (s.begun.IsZero() || s.presumed) {
		s.begin(now)
	}
	s.child, s.revision = o.Child, o.Revision
	return s
}

func (s *state) begin(now time.Time) { s.begun, s.presumed, s.unannounced = now, false, true }

// complete returns the state of a child all of whose pods are available, and the duration of the
// rollout that was in progress until now, if there was one.
func (s state) complete(o Observation, now time.Time) (after state, duration time.Duration, found bool) {
	switch {
	case s.begun.IsZero():
	case !s.presumed:
		duration, found = now.Sub(s.begun), true
	case o.CompletedAt.After(s.begun):
		duration, found = o.CompletedAt.Sub(s.begun), true
	}
	return state{child: s.child, revision: s.revision}, duration, found
}
