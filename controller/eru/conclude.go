// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
)

// reasonScheduled is why an Eru is ready, and so is reasonDisabled: a disabled one
// is as it was asked for.
const reasonScheduled = "Scheduled"

var zero metav1.Time

// conclude fills in the status of obj. asked is obj with its defaults, errs is what
// is wrong with it.
func conclude(obj, asked *mtsrev1.Eru, errs field.ErrorList, target *appsv1.Deployment, d decision, now time.Time) {
	st := &obj.Status
	restartBegan(d.entries, asked.Status.Conditions)
	remember(st, d, asked.Spec.HistoryLimit)
	complete(st.History, target, now)
	verdict := judgement(asked, errs, target, d)
	st.Phase = phase(asked.Spec.Enabled, verdict)
	st.ObservedGeneration = obj.Generation
	verdict.Set(&st.Conditions, obj.Generation, metav1.NewTime(now))
}

// remember moves a decision into status. lastScheduleTime never moves back.
func remember(st *mtsrev1.EruStatus, d decision, limit *int32) {
	for _, entry := range d.entries {
		if st.LastScheduleTime == nil || st.LastScheduleTime.Time.Before(entry.Slot.Time) {
			st.LastScheduleTime = new(entry.Slot)
		}
		st.History = slices.Insert(st.History, 0, entry)
	}
	if limit != nil && len(st.History) > int(*limit) {
		st.History = st.History[:max(*limit, 0)]
	}
	st.NextScheduleTime = nil
	if !d.next.IsZero() {
		st.NextScheduleTime = new(metav1.NewTime(d.next))
	}
}

// complete notes that the rollout of the last restart has been seen to be
// complete.
func complete(history []mtsrev1.EruHistory, target *appsv1.Deployment, now time.Time) {
	at := restartedAt(target)
	open := slices.IndexFunc(history, func(entry mtsrev1.EruHistory) bool {
		return entry.Result == mtsrev1.EruRestarted && entry.CompletedAt == nil && entry.Slot.Time.Equal(at)
	})
	if open >= 0 && workload.Progress(target).Ready {
		history[open].CompletedAt = new(metav1.NewTime(now))
	}
}

func phase(enabled bool, verdict status.Verdict) mtsrev1.EruPhase {
	switch {
	case !enabled:
		return mtsrev1.EruStopped
	case verdict.Stalled:
		return mtsrev1.EruFailed
	}
	return mtsrev1.EruRunning
}

// judgement is what there is to say of an Eru. asked still has the status from
// before.
func judgement(asked *mtsrev1.Eru, errs field.ErrorList, target *appsv1.Deployment, d decision) status.Verdict {
	switch {
	case len(errs) > 0:
		return status.Stuck(status.ReasonInvalidSpec, status.Describe(errs))
	case target == nil:
		return status.Stuck(reasonTargetNotFound, fmt.Sprintf(
			"there is no Deployment %q in this namespace: create it, or change spec.deploymentName", asked.Spec.DeploymentName))
	case !asked.Spec.Enabled:
		return status.Verdict{Ready: true, Reason: reasonDisabled, Message: "spec.enabled is false: nothing is restarted"}
	case d.wait != nil:
		return *d.wait
	}
	if failure := failure(asked, d); failure != nil {
		return status.Stuck(failure.Reason, failure.Message)
	}
	// Written in UTC: a slot that was found is in the Eru's zone, one that was read
	// back from status is not, and the sentence must be the same.
	return status.Verdict{Ready: true, Reason: reasonScheduled, Message: fmt.Sprintf(
		"Deployment %q is restarted next for %s", target.Name, written(d.next))}
}

// failure is the condition, in the words of the API server, of an Eru whose last
// restart was refused until its deadline. It stands until another slot is decided
// on or the spec is changed.
func failure(asked *mtsrev1.Eru, d decision) *metav1.Condition {
	conditions := asked.Status.Conditions
	if n := len(d.entries); n > 0 {
		if d.entries[n-1].Result != mtsrev1.EruResultFailed {
			return nil
		}
		return meta.FindStatusCondition(conditions, status.Reconciling)
	}
	stalled := meta.FindStatusCondition(conditions, status.Stalled)
	if stalled == nil || asked.Status.ObservedGeneration != asked.Generation ||
		stalled.Reason == reasonTargetNotFound || stalled.Reason == status.ReasonInvalidSpec {
		return nil
	}
	return stalled
}
