// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/modelbox-operator/modelbox-operator/api"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/kinds/eru"
)

// Why a scheduled time passed without a restart, beside workload.ReasonTargetNotFound and the
// reasons of package kinds/eru. For one that the API server refused it is the reason in the API
// server's response, such as Forbidden.
const (
	// reasonMissedDeadline: the controller did not run in time.
	reasonMissedDeadline = "MissedDeadline"
	// reasonSuperseded: the next scheduled time came before this one was decided.
	reasonSuperseded = "Superseded"
	// reasonSpecChanged: the spec was changed and does not contain this time any more, or it
	// is unknown whether it did at that time.
	reasonSpecChanged = "SpecChanged"
	// reasonDisabled: spec.enabled became false before it was decided.
	reasonDisabled = "Disabled"
	// reasonTargetIsNewer: the Deployment was created after it.
	reasonTargetIsNewer = "TargetIsNewer"
	// reasonTargetTerminating: the Deployment was being deleted.
	reasonTargetTerminating = "TargetTerminating"
	// reasonDeploymentPaused: the Deployment was paused.
	reasonDeploymentPaused = "DeploymentPaused"
	// reasonNoReplicas: the Deployment had no pods to restart.
	reasonNoReplicas = "NoReplicas"
	// reasonRefused: the API server refused the restart without a reason.
	reasonRefused = "Refused"
	// reasonRolloutInProgress: another rollout did not end in time.
	reasonRolloutInProgress = "RolloutInProgress"
)

// outcome returns the outcome of a scheduled time whose start has come. Without a result, the
// restart waits for the reason, or is to be made now if there is none.
func (p *plan) outcome(slot time.Time, s state, target *appsv1.Deployment, now time.Time) (result mtsrev1.EruResult, reason string) {
	if restartedAt(target).Equal(slot) {
		return mtsrev1.EruRestarted, ""
	}
	if !p.InWindow(slot, p.Start(slot)) {
		return mtsrev1.EruSkipped, eru.ReasonOutsideWindow
	}
	if !now.Before(p.End(slot)) {
		if !slot.Equal(s.next) {
			s.waiting = "" // The one that waited was another one.
		}
		return s.missed()
	}
	if reason := skipReason(target, slot); reason != "" {
		return mtsrev1.EruSkipped, reason
	}
	if !p.InWindow(slot, now) { // It ended while the restart waited.
		return mtsrev1.EruSkipped, eru.ReasonOutsideWindow
	}
	if !workload.Progress(target).Ready {
		return "", reasonRolloutInProgress
	}
	return "", ""
}

// skipReason returns the reason for which a Deployment must not be restarted for a scheduled
// time, "" if it may be. None of the reasons disappears by waiting.
func skipReason(target *appsv1.Deployment, slot time.Time) string {
	switch {
	case target == nil:
		return workload.ReasonTargetNotFound
	case target.DeletionTimestamp != nil:
		return reasonTargetTerminating
	case target.CreationTimestamp.After(slot):
		return reasonTargetIsNewer
	case restartedAt(target).After(slot):
		return eru.ReasonAlreadyRestarted
	case target.Spec.Paused:
		return reasonDeploymentPaused
	case ptr.Deref(target.Spec.Replicas, 1) == 0:
		return reasonNoReplicas
	}
	return ""
}

// restartedAt returns when a Deployment was restarted last, the zero time if that is not
// known.
func restartedAt(deployment *appsv1.Deployment) time.Time {
	if deployment == nil {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, deployment.Spec.Template.Annotations[api.AnnotationRestartedAt])
	if err != nil {
		return time.Time{}
	}
	return at
}

// wake returns when the next decision is due if no watch event comes, the zero time for never.
func (p *plan) wake(d decision, now time.Time) time.Time {
	switch {
	case d.next.IsZero():
		return time.Time{}
	case d.wait == nil:
		return p.Start(d.next)
	}
	wake := p.End(d.next)
	if by := p.next(d.next); !by.IsZero() && p.Start(by).Before(wake) {
		wake = p.Start(by)
	}
	wake = p.ClosesBefore(d.next, wake)
	if again := now.Add(p.backoff(d.next, now)); d.wait.Reason != reasonRolloutInProgress && again.Before(wake) {
		return again
	}
	return wake
}

// backoff returns how long to wait before another attempt at a restart: as long as it has
// been tried for, so that the pauses double, from a second to two minutes.
func (p *plan) backoff(slot, now time.Time) time.Duration {
	return min(max(now.Sub(p.Start(slot)), time.Second), 2*time.Minute)
}
