// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/api"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/kinds/eru"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// reasonScheduled is the reason of Ready of an enabled Eru; that of a disabled one is
// reasonDisabled, and it is ready as well.
const reasonScheduled = "Scheduled"

// updateStatus sets the status of an Eru to a decision. before is the status that was read,
// errs are the errors of the spec.
func updateStatus(
	obj *mtsrev1.Eru, before *mtsrev1.EruStatus, errs field.ErrorList, target *appsv1.Deployment, d decision, p plan, now time.Time,
) {
	st := &obj.Status
	setStartedAt(d.entries, before.Pending)
	addHistory(st, d, obj.Spec.HistoryLimit)
	setCompletedAt(st.History, target, now)
	st.Pending = pendingOf(obj, before, d, now)
	readiness := readinessOf(obj, errs, target, d, p)
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

// readinessOf returns the readiness of an Eru whose status has the decision already, except for
// the conditions.
func readinessOf(obj *mtsrev1.Eru, errs field.ErrorList, target *appsv1.Deployment, d decision, p plan) status.Readiness {
	pending := obj.Status.Pending
	switch {
	case len(errs) > 0:
		return status.NewStalled(status.ReasonInvalidSpec, rules.FormatErrors(errs))
	case target == nil:
		return workload.TargetNotFound(obj.DeploymentNameOrDefault())
	case !obj.Spec.Enabled:
		return status.Readiness{Ready: true, Reason: reasonDisabled, Message: "spec.enabled is false: nothing is restarted"}
	case d.wait != nil:
		return status.NewReconciling(pending.Reason, pending.Message)
	case pending != nil: // The last restart has failed.
		return status.NewStalled(pending.Reason, pending.Message)
	}
	return status.Readiness{Ready: true, Reason: reasonScheduled, Message: announcement(target, d, p)}
}

// announcement says what will happen next. Times are in UTC: one that was computed is in the
// Eru's zone, one that was read from status is not, and the message must be the same.
func announcement(target *appsv1.Deployment, d decision, p plan) string {
	switch p.Skips(d.next, restartedAt(target)) {
	case eru.ReasonOutsideWindow:
		return fmt.Sprintf("the next scheduled time, %s, is outside of spec.windows and will be skipped", formatTime(d.next))
	case eru.ReasonAlreadyRestarted:
		return fmt.Sprintf("scheduled times are skipped until %s, because Deployment %q has that time in the annotation %s",
			formatTime(restartedAt(target)), target.Name, api.AnnotationRestartedAt)
	}
	return fmt.Sprintf("next restart of Deployment %q at %s", target.Name, formatTime(d.next))
}

// pendingOf returns status.pending after a decision: the scheduled time that waits, or the one
// whose restart has failed, until the next one is decided or the spec is changed.
func pendingOf(obj *mtsrev1.Eru, before *mtsrev1.EruStatus, d decision, now time.Time) *mtsrev1.EruPending {
	failed := len(d.entries) == 0 && before.ObservedGeneration == obj.Generation && hasFailed(before)
	if n := len(d.entries); n > 0 {
		failed = d.entries[n-1].Result == mtsrev1.EruResultFailed
	}
	switch pending := d.wait; {
	case pending != nil:
		pending.Since = metav1.NewTime(now)
		if was := before.Pending; isFor(was, d.next) && was.Reason == pending.Reason {
			pending.Since = was.Since
		}
		return pending
	case failed:
		return before.Pending
	}
	return nil
}

// hasFailed reports whether status.pending is that of the last scheduled time, whose restart has
// failed. Without a history, a pending time that has a result can be no other one.
func hasFailed(st *mtsrev1.EruStatus) bool {
	return st.LastScheduleTime != nil && isFor(st.Pending, st.LastScheduleTime.Time) &&
		(len(st.History) == 0 || st.History[0].Result == mtsrev1.EruResultFailed)
}

// setRestarting sets in status that the Deployment is about to be restarted for a scheduled time.
// It is written before the restart, so that the time of the restart is known even if the response
// to it, or the status that follows, is lost.
func setRestarting(obj *mtsrev1.Eru, slot, now time.Time) {
	pending := newPending(slot, reasonRestarting, "the Deployment is being restarted for "+formatTime(slot))
	pending.Since = metav1.NewTime(now)
	obj.Status.Pending = pending
	status.SetCondition(&obj.Status.Conditions, metav1.Condition{
		Type: status.ConditionReconciling, Status: metav1.ConditionTrue, ObservedGeneration: obj.Generation,
		LastTransitionTime: pending.Since, Reason: pending.Reason, Message: pending.Message,
	})
}

// setStartedAt completes the entry of a restart that was found in the Deployment with the time
// that was written before it.
func setStartedAt(entries []mtsrev1.EruHistory, pending *mtsrev1.EruPending) {
	for i := range entries {
		entry := &entries[i]
		if entry.Result == mtsrev1.EruRestarted && entry.StartedAt == nil && isFor(pending, entry.Slot.Time) && pending.Reason == reasonRestarting {
			entry.StartedAt = new(pending.Since)
		}
	}
}
