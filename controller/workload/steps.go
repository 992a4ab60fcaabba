// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/schedules"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// Step is one step of a reconcile. After the time that it returns, 0 for never, the owner is to be
// reconciled again. Its error ends the reconcile; see apply.Result.
type Step func(context.Context, *State) (again time.Duration, err error)

// Run takes steps in their order, and merges their results.
func (*Reconciler) Run(ctx context.Context, s *State, steps ...Step) (reconcile.Result, error) {
	var again, next time.Duration
	var err error
	for _, step := range steps {
		next, err = step(ctx, s)
		again = trigger.Sooner(again, next)
		if err != nil || s.scaled {
			break
		}
	}
	result, err := apply.Result(err)
	result.RequeueAfter = trigger.Sooner(result.RequeueAfter, again)
	return result, err
}

// Scale writes the replicas of a scheduled time that has come. That is a change of the spec, with
// which another reconcile begins, so this one ends.
func (r *Reconciler) Scale(ctx context.Context, s *State) (again time.Duration, err error) {
	s.scaled, again, s.failed = r.Schedules.Scale(ctx, &schedules.Object{
		Object: s.Owner, Kind: s.OwnerKind, Schedules: s.Schedules, Replicas: *s.Replicas, Status: &s.WorkloadStatus.Schedule, Held: s.Paused,
		Writer: s.Writer,
	})
	return again, nil
}

// Build sets the desired state of the children, unless the errors of the spec leave open what that
// is. It is pure.
func (*Reconciler) Build(_ context.Context, s *State) (time.Duration, error) {
	if s.Rollout.lost {
		s.failed = status.NewStalled(reasonRolledBack, "the record of the last complete rollout is gone, so the children stay as they are")
		return 0, nil
	}
	s.failed = cmp.Or(s.build(), s.failed)
	return 0, nil
}

func (s *State) build() error {
	if err := workload.Buildable(s.Errs); err != nil {
		return err
	}
	if s.OnNodes {
		set, err := s.DaemonSet()
		if err == nil {
			s.Pods.Desired = set
		}
		return err
	}
	deployment, err := s.Deployment()
	if err != nil {
		return err
	}
	s.Pods.Desired = deployment
	if len(s.MatchLabels) > 0 {
		s.Pods.Expect = append(s.Pods.Expect, apply.Selector(s.MatchLabels))
	}
	if service := s.Workload.Service(); service != nil {
		s.Service.Desired = service
	}
	s.optional.object = s.OptionalChildren()
	return nil
}

// Apply creates, applies or deletes the children, if Build has set what they have to be; see
// apply.Writer for the errors.
func (r *Reconciler) Apply(ctx context.Context, s *State) (again time.Duration, err error) {
	if s.Pods.Desired == nil {
		return 0, nil
	}
	again, err = r.apply(ctx, s)
	s.Applied, s.failed = err == nil, cmp.Or(err, s.failed)
	return trigger.Sooner(again, trigger.Sooner(s.configured.again, s.optional.requeueAfter())), nil
}

func (r *Reconciler) apply(ctx context.Context, s *State) (again time.Duration, err error) {
	s.optional.watch(ctx, r.Watches)
	unread := s.optional.competingAutoscaler(ctx, r.Writer.Client, s.Owner)
	owner := s.owner()
	if err := r.Writer.Read(ctx, owner, s.all()...); err != nil {
		return 0, err
	}
	unread = errors.Join(unread, r.complete(ctx, s))
	again, err = r.Writer.Write(ctx, owner, s.written()...)
	s.Status.Children = owner.Children
	s.recordConfiguration()
	if err == nil {
		err = r.release(ctx, s)
	}
	if unread == nil {
		return again, err
	}
	return again, errors.Join(err, unread)
}

// complete completes the desired state of the child that runs the pods with what its status and the
// cluster say. That child alone is not written if it cannot. The error that it returns keeps
// nothing from being written.
func (r *Reconciler) complete(ctx context.Context, s *State) (err error) {
	if s.Pods.Err == nil {
		s.Pods.Err = s.keepFetcher()
	}
	if s.Pods.Err == nil {
		s.Pods.Err = r.hold(ctx, s)
	}
	if s.Pods.Err == nil && !s.held.template {
		err, s.Pods.Err = r.configure(ctx, s)
	}
	return err
}

// Reread reads, of an owner whose children could not be applied, those that it controls: status
// shows no others.
func (r *Reconciler) Reread(ctx context.Context, s *State) (time.Duration, error) {
	s.refused, s.failed = apply.ReadinessOf(invalidSpec(s.failed))
	if s.refused == nil && s.failed == nil {
		return 0, nil
	}
	r.Writer.Observe(ctx, s.Owner, s.all()...)
	if s.Pods.Err != nil {
		return 0, errors.Join(s.failed, s.Pods.Err)
	}
	return 0, nil
}
