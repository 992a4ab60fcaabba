// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/problems"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// reasonRolledBack means that the children are those of the last complete rollout, because the one of
// the spec has failed.
const reasonRolledBack = "RolledBack"

// failsFor is how long no pod of a rollout has been able to start when it has failed: long enough for
// what the pods refer to, and which is applied with them, to come into being.
const failsFor = time.Minute

// Rollout is the spec of an object as what a rollout rolls out.
type Rollout struct {
	// data and hash are what is recorded when the rollout is complete; hash is "" without
	// spec.onFailedRollout: Return.
	data []byte
	hash string
	// lost is that the children are to be those of a rollout whose record is gone.
	lost bool
}

// Recall returns the rollout of a stored spec. If it has failed, the spec and the fetcher that status
// has become those of the last complete rollout, from which the children are built then; neither is
// written. It reads nothing otherwise.
func (r *Reconciler) Recall(
	ctx context.Context, owner kinds.Object, spec any, on modelv1.OnFailedRollout, into *modelv1.RolloutStatus, fetcher **modelv1.FetcherStatus,
) (rollout Rollout, err error) {
	if on != modelv1.OnFailedRolloutReturn {
		return Rollout{}, nil
	}
	if rollout.data, rollout.hash, err = workload.RolledOut(spec); err != nil || into == nil || into.Complete == "" {
		return rollout, err
	}
	observeSpec(into, rollout.hash, r.Clock.Now())
	if err := r.lookAgain(ctx, owner, into); err != nil || into.Failed == "" {
		return rollout, err
	}
	last, err := r.readRecord(ctx, owner, into.Complete)
	if err != nil || last == nil {
		rollout.lost = true
		return rollout, err
	}
	if have := *fetcher; into.Fetcher != nil && (have == nil || have.TemplateHash != into.Fetcher.TemplateHash) {
		*fetcher = into.Fetcher.DeepCopy()
	}
	return rollout, workload.Return(spec, last)
}

// observeSpec keeps in status since when the spec with a hash has been rolled out. Another one has not
// failed yet.
func observeSpec(into *modelv1.RolloutStatus, hash string, now time.Time) {
	if into.Complete == hash {
		into.Present, into.Since, into.Failed, into.FailedGeneration = "", nil, "", 0
	} else if into.Present != hash {
		into.Present, into.Since, into.Failed, into.FailedGeneration = hash, new(metav1.NewTime(now)), "", 0
	}
}

// lookAgain forgets that a rollout has failed if it became complete before anything was returned. A
// write of status whose answer was lost, or another leader, lets time pass between the two.
func (r *Reconciler) lookAgain(ctx context.Context, owner kinds.Object, into *modelv1.RolloutStatus) error {
	if into.Failed == "" {
		return nil
	}
	key, live := client.ObjectKeyFromObject(owner), &appsv1.Deployment{}
	if err := r.Writer.Client.Get(ctx, key, live); err != nil || live.Generation > into.FailedGeneration {
		return client.IgnoreNotFound(err) // It is the one that was returned to.
	}
	err := r.Writer.Live.Get(ctx, key, live)
	if err == nil && live.Generation == into.FailedGeneration && isComplete(live) {
		into.Failed, into.FailedGeneration = "", 0
	}
	return client.IgnoreNotFound(err)
}

// returned says that the children are those of the last complete rollout, and why; "" if they are
// those of the spec.
func (s *State) returned() string {
	why := s.rolloutStatus().Failed
	if s.Rollout.hash == "" || why == "" {
		return ""
	}
	return fmt.Sprintf("the rollout of this spec has failed (%s), so the last complete one serves until spec is changed", why)
}

// rolloutStatus returns what status says of the rollouts.
func (s *State) rolloutStatus() modelv1.RolloutStatus {
	if s.WorkloadStatus == nil {
		return modelv1.RolloutStatus{}
	}
	return ptr.Deref(s.WorkloadStatus.Rollout, modelv1.RolloutStatus{})
}

// RecordRollout records what a rollout that is complete was made of, in place of the one before.
// If it cannot, the object is not ready: it would not return.
func (r *Reconciler) RecordRollout(ctx context.Context, s *State) (time.Duration, error) {
	var err error
	before := s.rolloutStatus()
	switch {
	case !s.isWritten():
	case s.Rollout.hash == "":
		if s.WorkloadStatus.Rollout != nil {
			err = r.deleteRecord(ctx, s, before.Complete)
		}
		if err == nil {
			s.WorkloadStatus.Rollout = nil
		}
	case s.Rollout.hash != before.Complete && before.Failed == "" && isComplete(s.Pods.Live.(*appsv1.Deployment)):
		err = r.recordRollout(ctx, s, before.Complete)
	}
	if err != nil {
		s.refused, s.failed = apply.ReadinessOf(err)
	}
	return 0, nil
}

// recordRollout stores the record of the present rollout, which status names before the one that it
// replaces is deleted.
func (r *Reconciler) recordRollout(ctx context.Context, s *State, before string) error {
	if err := r.createRecord(ctx, s, s.Rollout.hash, s.Rollout.data); err != nil {
		return err
	}
	s.WorkloadStatus.Rollout = &modelv1.RolloutStatus{Complete: s.Rollout.hash, Fetcher: s.Fetched.DeepCopy()}
	if err := s.Writer.WriteFirst(ctx); err != nil || before == "" {
		return err
	}
	return r.deleteRecord(ctx, s, before)
}

// GiveUp gives a rollout up that has failed, if there was a complete one: the next reconcile, at once,
// makes the children those of that one.
func (r *Reconciler) GiveUp(ctx context.Context, s *State) (again time.Duration, err error) {
	into := s.WorkloadStatus.Rollout
	if !s.rollsOut() {
		return 0, nil
	}
	live := s.Pods.Live.(*appsv1.Deployment)
	why, after := failed(live, s.Status.Problems, ptr.Deref(into.Since, metav1.Time{}).Time)
	if why == "" {
		return 0, nil
	}
	if wait := after.Sub(r.Clock.Now()); wait > 0 {
		return wait, nil
	}
	last, err := r.readRecord(ctx, s.Owner, into.Complete)
	if err != nil {
		return 0, err
	}
	if last == nil { // There is nothing to return to.
		s.WorkloadStatus.Rollout = nil
		return 0, nil
	}
	into.Failed, into.FailedGeneration = why, live.Generation
	if err := s.Writer.WriteFirst(ctx); err != nil {
		return 0, err
	}
	r.Writer.Recorder.Eventf(s.Owner, nil, corev1.EventTypeWarning, reasonRolledBack, "Return", "%.1000s", s.returned())
	return time.Nanosecond, nil
}

// rollsOut reports whether the spec, after a complete rollout of another one, is being rolled out.
func (s *State) rollsOut() bool {
	into := s.rolloutStatus()
	return s.Rollout.hash != "" && s.Rollout.hash == into.Present && into.Failed == "" && s.isWritten()
}

// isWritten reports whether the children are those of the spec, or of the last complete rollout.
func (s *State) isWritten() bool { return s.Applied && !s.Paused && !s.Holds() && s.Pods.Settled() }

// failed returns why the rollout of a Deployment fails, in the words of the cluster, and from when on
// it counts as one that has failed; "" if it does not. A rollout that was complete has not failed,
// whatever its pods do later. Kubernetes may keep the condition of an earlier rollout, so the deadline
// counts from when the spec was seen as well, and what was complete before is another rollout: with the
// strategy Recreate, and a ReplicaSet that exists already, it says so until the next one. It is pure.
func failed(live *appsv1.Deployment, found []modelv1.Problem, since time.Time) (why string, after time.Time) {
	progressing := conditionOf(live)
	if !isObserved(live) || progressing.Reason == complete && !progressing.LastUpdateTime.Time.Before(since.Truncate(time.Second)) {
		return "", time.Time{}
	}
	if progressing.Reason == status.ReasonProgressDeadline {
		seconds := ptr.Deref(live.Spec.ProgressDeadlineSeconds, 0)
		return failure(&live.Status).Message, since.Add(time.Duration(seconds) * time.Second)
	}
	if len(found) == 0 || !problems.IsOfTemplate(&found[0]) || found[0].Count < live.Status.UpdatedReplicas {
		return "", time.Time{}
	}
	if begun := found[0].Since.Time; begun.After(since) {
		since = begun
	}
	return problems.Sentence(&found[0]), since.Add(failsFor)
}

// isComplete reports whether all pods of a Deployment, at least one, run its template and are
// available, and its controller says so as well.
func isComplete(live *appsv1.Deployment) bool {
	return live.Status.AvailableReplicas > 0 && conditionOf(live).Reason == complete && Progress(live).Ready
}

// conditionOf returns the condition Progressing of a Deployment, the zero value if it has none.
func conditionOf(live *appsv1.Deployment) appsv1.DeploymentCondition {
	for _, condition := range live.Status.Conditions {
		if condition.Type == appsv1.DeploymentProgressing {
			return condition
		}
	}
	return appsv1.DeploymentCondition{}
}
