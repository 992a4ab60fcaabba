// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/problems"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// Report sets the status of the owner to the observed state. An error without a meaning for it is
// returned: if it lasts, package status says so.
func (r *Reconciler) Report(ctx context.Context, s *State) (again time.Duration, err error) {
	switch {
	case s.refused != nil:
		s.Status.Problems, s.Observed.Progress = nil, *s.refused
	case s.failed != nil:
		return 0, s.failed
	case s.optional.starting:
		return whileStarting, nil
	default:
		again = r.diagnose(ctx, s)
	}
	r.setConditions(s)
	return again, s.failed
}

// diagnose adds to the progress of an owner whose children have been applied why its pods are not
// available, and sets its problems. Its conditions are still the stored ones. After the time that
// it returns, the pods are to be read again; 0 is never.
func (r *Reconciler) diagnose(ctx context.Context, s *State) (again time.Duration) {
	subject := &problems.Subject{Owner: s.Owner, Workload: s.Observed.Workload, Conditions: s.Status.Conditions, Problems: s.Status.Problems}
	progress := s.Observed.Progress
	// A readiness that is neither Reconciling nor Stalled has another cause than the pods.
	skip := s.Paused || !progress.Reconciling && !progress.Stalled
	s.Observed.Progress, s.Status.Problems, again = r.Problems.Diagnose(ctx, subject, progress, skip)
	return again
}

// setConditions sets the conditions of an owner.
func (r *Reconciler) setConditions(s *State) {
	generation, now := s.Owner.GetGeneration(), metav1.NewTime(r.Clock.Now())
	s.Status.ObservedGeneration = generation
	described := s.Observed.Progress.WithSpecErrors(s.Errs)
	described.SetNotReady(status.ReasonRewritten, apply.Rewritten(s.Status.Children), true)
	described.SetNotReady(reasonRolledBack, s.returned(), true)
	described.SetNotReady(s.configured.reason, s.configured.waiting, false)
	described.AppendMessage(s.configured.note)
	described.AppendMessage(s.optional.message())
	described.SetConditions(&s.Status.Conditions, generation, now)
	status.SetPaused(&s.Status.Conditions, s.Paused, generation, now)
	available := s.Observed.Availability
	if !s.Pods.Exists() {
		available = status.NoChild(s.Observed.Kind, s.Observed.Progress)
	}
	status.SetAvailable(&s.Status.Conditions, available, s.refused == nil && s.Observed.Workload.Observed, generation, now)
}
