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
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// reasonScheduled is the reason of Ready of an enabled Eru; that of a disabled one is
// reasonDisabled, and it is ready as well.
const reasonScheduled = "Scheduled"

var zero metav1.Time

// updateStatus sets the status of an Eru to a decision. before is the status that was read,
// errs are the errors of the spec.
func updateStatus(
	obj *mtsrev1.Eru, before *mtsrev1.EruStatus, errs field.ErrorList, target *appsv1.Deployment, d decision, now time.Time,
) {
	st := &obj.Status
	setStartedAt(d.entries, before.Conditions)
	addHistory(st, d, obj.Spec.HistoryLimit)
	setCompletedAt(st.History, target, now)
	readiness := readinessOf(obj, before, errs, target, d)
	st.Phase = phase(obj.Spec.Enabled, readiness)
	st.ObservedGeneration = obj.Generation
	readiness.SetConditions(&st.Conditions, obj.Generation, metav1.NewTime(now))
}

// addHistory adds the entries of a decision to the history, the newest first, and sets the
// last and the next scheduled time. lastScheduleTime never moves back.
func addHistory(st *mtsrev1.EruStatus, d decision, limit *int32) {
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

// setCompletedAt sets when the rollout of the last restart was observed to be complete.
func setCompletedAt(history []mtsrev1.EruHistory, target *appsv1.Deployment, now time.Time) {
	at := restartedAt(target)
	open := slices.IndexFunc(history, func(entry mtsrev1.EruHistory) bool {
		return entry.Result == mtsrev1.EruRestarted && entry.CompletedAt == nil && entry.Slot.Time.Equal(at)
	})
	if open >= 0 && workload.Progress(target).Ready {
		history[open].CompletedAt = new(metav1.NewTime(now))
	}
}

func phase(enabled bool, readiness status.Readiness) mtsrev1.EruPhase {
	switch {
	case !enabled:
		return mtsrev1.EruStopped
	case readiness.Stalled:
		return mtsrev1.EruFailed
	}
	return mtsrev1.EruRunning
}

func readinessOf(obj *mtsrev1.Eru, before *mtsrev1.EruStatus, errs field.ErrorList, target *appsv1.Deployment, d decision) status.Readiness {
	switch {
	case len(errs) > 0:
		return status.NewStalled(status.ReasonInvalidSpec, rules.FormatErrors(errs))
	case target == nil:
		return workload.TargetNotFound(obj.DeploymentNameOrDefault())
	case !obj.Spec.Enabled:
		return status.Readiness{Ready: true, Reason: reasonDisabled, Message: "spec.enabled is false: nothing is restarted"}
	case d.wait != nil:
		return *d.wait
	}
	if failure := failure(obj, before, d); failure != nil {
		return status.NewStalled(failure.Reason, failure.Message)
	}
	if d.outside {
		return status.Readiness{Ready: true, Reason: reasonScheduled, Message: fmt.Sprintf(
			"the next scheduled time, %s, is outside of spec.windows and will be skipped", formatTime(d.next))}
	}
	// In UTC: a time that was computed is in the Eru's zone, one that was read from status is
	// not, and the message must be the same.
	return status.Readiness{Ready: true, Reason: reasonScheduled, Message: fmt.Sprintf(
		"Deployment %q is restarted next at %s", target.Name, formatTime(d.next))}
}

// failure returns the condition, with the API server's message, of an Eru whose last restart
// the API server refused until the deadline. It stays until the next scheduled time is
// decided or the spec is changed.
func failure(obj *mtsrev1.Eru, before *mtsrev1.EruStatus, d decision) *metav1.Condition {
	if n := len(d.entries); n > 0 {
		if d.entries[n-1].Result != mtsrev1.EruResultFailed {
			return nil
		}
		return meta.FindStatusCondition(before.Conditions, status.ConditionReconciling)
	}
	stalled := meta.FindStatusCondition(before.Conditions, status.ConditionStalled)
	if stalled == nil || before.ObservedGeneration != obj.Generation ||
		stalled.Reason == workload.ReasonTargetNotFound || stalled.Reason == status.ReasonInvalidSpec {
		return nil
	}
	return stalled
}

// reasonRestarting is the reason of Reconciling from just before a Deployment is restarted
// until status contains the restart.
const reasonRestarting = "Restarting"

// setRestarting sets the condition that a Deployment is about to be restarted for a
// scheduled time. It is written before the restart, so that the time of the restart is known
// even if the response to it, or the status that follows, is lost.
func setRestarting(obj *mtsrev1.Eru, slot, now time.Time) {
	conditions := &obj.Status.Conditions
	meta.RemoveStatusCondition(conditions, status.ConditionReconciling) // For a new lastTransitionTime.
	status.SetCondition(conditions, metav1.Condition{
		Type:               status.ConditionReconciling,
		Status:             metav1.ConditionTrue,
		ObservedGeneration: obj.Generation,
		LastTransitionTime: metav1.NewTime(now),
		Reason:             reasonRestarting,
		Message:            restartingMessage(slot),
	})
}

func restartingMessage(slot time.Time) string {
	return fmt.Sprintf("the Deployment is being restarted for %s", formatTime(slot))
}

// setStartedAt completes the entry of a restart that was found in the Deployment with the
// time of the condition that was set before it.
func setStartedAt(entries []mtsrev1.EruHistory, conditions []metav1.Condition) {
	restarting := meta.FindStatusCondition(conditions, status.ConditionReconciling)
	if restarting == nil || restarting.Reason != reasonRestarting {
		return
	}
	for i := range entries {
		entry := &entries[i]
		if entry.Result == mtsrev1.EruRestarted && entry.StartedAt == nil && restarting.Message == restartingMessage(entry.Slot.Time) {
			entry.StartedAt = new(restarting.LastTransitionTime)
		}
	}
}
