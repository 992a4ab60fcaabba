// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/configuration"
	"github.com/modelbox-operator/modelbox-operator/controller/freeze"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/kinds/windows"
)

// The reasons of Ready while a rollout waits.
const (
	// reasonWaitingForWindow means that no window of the spec is open.
	reasonWaitingForWindow = "WaitingForWindow"
	// reasonRolloutQueued means that the rollouts of other objects begin first.
	reasonRolloutQueued = "RolloutQueued"
	// reasonRolloutInProgress means that the pods do not run the last pod template yet.
	reasonRolloutInProgress = "RolloutInProgress"
)

// wait is why a rollout does not happen now: the reason of Ready, a cause
// for its message, and after which time to look again, 0 for never. The zero wait is none.
type wait struct {
	reason, cause string
	again         time.Duration
}

// waits returns what a rollout waits for: the rollout before it, then a window, then the end of a
// freeze, and then its turn, which it takes last and only if it is going to be written.
func (r *Reconciler) waits(ctx context.Context, s *State) (w wait, err error) {
	now := r.Clock.Now()
	if w = inProgress(s, now); w.reason == "" {
		w = closed(s.Windows, now)
	}
	if w.reason != "" {
		r.Queue.Remove(r.subject(client.ObjectKeyFromObject(s.Owner)))
		return w, nil
	}
	return r.turn(ctx, s)
}

// turn returns what a rollout in a window waits for.
func (r *Reconciler) turn(ctx context.Context, s *State) (wait, error) {
	owner := r.subject(client.ObjectKeyFromObject(s.Owner))
	w, err := r.frozen(ctx, owner.Namespace)
	if err != nil || w.reason != "" || s.Paused {
		r.Queue.Remove(owner)
		return w, err
	}
	position, again := r.Queue.Admit(owner)
	if position == 0 {
		return wait{}, nil
	}
	cause := fmt.Sprintf("queued (position %d; %d rollouts per minute)", position, r.Queue.PerMinute)
	return wait{reasonRolloutQueued, cause, min(again, trigger.Longest)}, nil
}

// subject returns an owner as one that waits for its turn.
func (r *Reconciler) subject(owner types.NamespacedName) configuration.Subject {
	return configuration.Subject{Kind: r.kind.Kind, NamespacedName: owner}
}

// closed returns the wait for the next window, which is none while one is open, or without windows.
// With windows that admission would refuse, when a rollout may happen is not known, so it waits for
// a change of the spec. It is pure.
func closed(spec modelv1.Windows, now time.Time) wait {
	parsed, err := windows.Parse(spec)
	if err != nil || len(windows.Validate(nil, spec)) > 0 {
		return wait{reason: reasonWaitingForWindow, cause: "spec.windows or spec.skipDates is invalid"}
	}
	if parsed.Open(now) {
		return wait{}
	}
	opens, ok := parsed.Opens(now)
	if !ok {
		return wait{reason: reasonWaitingForWindow, cause: "no window of spec.windows opens"}
	}
	return wait{reasonWaitingForWindow, "next window opens at " + opens.Format(time.RFC3339), trigger.Until(opens, now)}
}

// deadline is after which time the rollout of a DaemonSet, which has no progress deadline, does not
// delay the next one: the default of that of a Deployment.
const deadline = 10 * time.Minute

// inProgress returns the wait for the end of a rollout: until it is complete, or its deadline has
// passed. It is pure.
func inProgress(s *State, now time.Time) wait {
	if !rollsOut(s.Pods.Live) {
		return wait{}
	}
	ready := meta.FindStatusCondition(s.Status.Conditions, status.ConditionReady)
	if _, ok := s.Pods.Live.(*appsv1.DaemonSet); ok && ready != nil && ready.Status != metav1.ConditionTrue && now.After(ready.LastTransitionTime.Add(deadline)) {
		return wait{}
	}
	return wait{reasonRolloutInProgress, "another rollout is in progress", trigger.Longest}
}

// rollsOut reports whether some pods of a child do not run its pod template yet, and are going to.
func rollsOut(pods client.Object) bool {
	switch live := pods.(type) {
	case *appsv1.Deployment:
		if observed := live.Status.ObservedGeneration; observed > 0 && observed < live.Generation {
			return true
		}
		for _, condition := range live.Status.Conditions {
			if condition.Type == appsv1.DeploymentProgressing {
				return !live.Spec.Paused && condition.Reason != complete && condition.Reason != status.ReasonProgressDeadline
			}
		}
	case *appsv1.DaemonSet:
		return live.Status.UpdatedNumberScheduled < live.Status.DesiredNumberScheduled
	}
	return false
}

// complete is what the deployment controller says of a rollout that is complete.
const complete = "NewReplicaSetAvailable"

// frozen returns the wait for the end of the freeze of a namespace. It sends one request.
func (r *Reconciler) frozen(ctx context.Context, namespace string) (wait, error) {
	reason, frozen, err := r.Freeze.Frozen(ctx, namespace)
	switch {
	case apierrors.IsForbidden(err):
		return wait{status.ReasonForbidden, "it is not known whether the namespace is frozen: " + err.Error(), freeze.Again}, nil
	case err != nil || !frozen:
		return wait{}, err
	}
	return wait{status.ReasonFrozen, fmt.Sprintf("namespace is frozen (%s)", reason), freeze.Again}, nil
}
