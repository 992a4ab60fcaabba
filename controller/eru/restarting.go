// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

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
