// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"github.com/modelbox-operator/modelbox-operator/api"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
)

// Why a slot passed without a restart. What the API server refused has the API
// server's own word, such as Forbidden.
const (
	// reasonMissedDeadline: nobody was there in time.
	reasonMissedDeadline = "MissedDeadline"
	// reasonSuperseded: the next slot came before this one was worked on.
	reasonSuperseded = "Superseded"
	// reasonSpecChanged: the spec was changed, and asks for it no more or is not
	// known to have asked for it at its time.
	reasonSpecChanged = "SpecChanged"
	// reasonDisabled: spec.enabled became false before it was worked on.
	reasonDisabled = "Disabled"
	// reasonTargetNotFound: there was no Deployment.
	reasonTargetNotFound = "TargetNotFound"
	// reasonTargetIsNewer: the Deployment was created after it.
	reasonTargetIsNewer = "TargetIsNewer"
	// reasonTargetTerminating: the Deployment was being deleted.
	reasonTargetTerminating = "TargetTerminating"
	// reasonAlreadyRestarted: somebody restarted the Deployment after it.
	reasonAlreadyRestarted = "AlreadyRestarted"
	// reasonDeploymentPaused: the Deployment was paused.
	reasonDeploymentPaused = "DeploymentPaused"
	// reasonNoReplicas: there was no pod to restart.
	reasonNoReplicas = "NoReplicas"
	// reasonRefused: the API server refused the restart, and had no word for it.
	reasonRefused = "Refused"
	// reasonRolloutInProgress: another rollout did not end in time.
	reasonRolloutInProgress = "RolloutInProgress"
)

// restartedAtAnnotation is the pod template's annotation that "kubectl rollout
// restart" writes (k8s.io/kubectl/pkg/polymorphichelpers/objectrestarter.go).
const restartedAtAnnotation = api.AnnotationRestartedAt

// restartedAt is when a Deployment was restarted last, the zero time if that is
// not known.
func restartedAt(target *appsv1.Deployment) time.Time {
	if target == nil {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, target.Spec.Template.Annotations[restartedAtAnnotation])
	if err != nil {
		return time.Time{}
	}
	return at
}

// memory is what an Eru remembers of its slots.
type memory struct {
	// announced is the first slot that is not decided on, the zero time if there is
	// none: the Eru is new, or was stopped.
	announced time.Time
	// decided is the newest slot that is decided on.
	decided time.Time
	// waiting is why announced has been waiting, "" if it has not.
	waiting string
	// changed says that the spec is another than the one that status describes.
	changed bool
	// created is when the spec began to hold, if it is as it was created and has
	// never been looked at; otherwise the zero time.
	created time.Time
}

// recall reads what an Eru remembers.
func recall(obj *mtsrev1.Eru) memory {
	st := &obj.Status
	m := memory{
		announced: ptr.Deref(st.NextScheduleTime, zero).Time,
		decided:   ptr.Deref(st.LastScheduleTime, zero).Time,
		changed:   st.ObservedGeneration != obj.Generation,
	}
	if st.ObservedGeneration == 0 && obj.Generation <= 1 {
		m.created = obj.CreationTimestamp.Time
	}
	waiting := meta.FindStatusCondition(st.Conditions, status.Reconciling)
	if waiting != nil && waiting.Reason != reasonRestarting && !m.announced.IsZero() {
		m.waiting = waiting.Reason
	}
	return m
}

// since is the moment after which slots count.
func (m memory) since(now time.Time) time.Time {
	since := now
	if !m.created.IsZero() {
		since = m.created
	}
	if m.decided.After(since) {
		return m.decided
	}
	return since
}

// halt settles the announced slot of an Eru that does not act on it, if its time
// has come, and announces none.
func (m memory) halt(reason string, target *appsv1.Deployment, now time.Time) decision {
	var d decision
	switch {
	case m.announced.IsZero() || m.announced.After(now):
	case restartedAt(target).Equal(m.announced):
		d.settle(m.announced, mtsrev1.EruRestarted, "")
	default:
		d.settle(m.announced, mtsrev1.EruSkipped, reason)
	}
	return d
}

// outcome is what came of a slot. While result is empty, the slot waits for what
// wait says, or the Deployment is to be restarted if that is nil.
type outcome struct {
	result mtsrev1.EruResult
	reason string
	wait   *status.Verdict
}

// late is the outcome of the announced slot when its time is over: what it waited
// for, if it did.
func (m memory) late() outcome {
	switch m.waiting {
	case "":
		return outcome{result: mtsrev1.EruSkipped, reason: reasonMissedDeadline}
	case reasonRolloutInProgress:
		return outcome{result: mtsrev1.EruSkipped, reason: m.waiting}
	}
	return outcome{result: mtsrev1.EruResultFailed, reason: m.waiting}
}

// judge says what comes of a slot whose start has come.
func (p plan) judge(slot time.Time, m memory, target *appsv1.Deployment, now time.Time) outcome {
	if restartedAt(target).Equal(slot) {
		return outcome{result: mtsrev1.EruRestarted}
	}
	if !now.Before(p.end(slot)) {
		if !slot.Equal(m.announced) {
			m.waiting = "" // It was another slot that waited.
		}
		return m.late()
	}
	if reason := obstacle(target, slot); reason != "" {
		return outcome{result: mtsrev1.EruSkipped, reason: reason}
	}
	if !workload.Progress(target).Ready {
		// How far it is, is left out: it would be a write of status for each pod.
		wait := status.Underway(reasonRolloutInProgress, fmt.Sprintf(
			"the restart of %s waits for another rollout of Deployment %q to end", written(slot), target.Name))
		return outcome{wait: &wait}
	}
	return outcome{}
}

// obstacle is why a Deployment is not to be restarted for a slot, "" if it may be.
// None of the reasons goes away by waiting.
func obstacle(target *appsv1.Deployment, slot time.Time) string {
	switch {
	case target == nil:
		return reasonTargetNotFound
	case target.DeletionTimestamp != nil:
		return reasonTargetTerminating
	case target.CreationTimestamp.After(slot):
		return reasonTargetIsNewer
	case restartedAt(target).After(slot):
		return reasonAlreadyRestarted
	case target.Spec.Paused:
		return reasonDeploymentPaused
	case ptr.Deref(target.Spec.Replicas, 1) == 0:
		return reasonNoReplicas
	}
	return ""
}

// written is a slot as it is written, to the Deployment and to people.
func written(slot time.Time) string { return slot.UTC().Format(time.RFC3339) }
