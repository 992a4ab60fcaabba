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

// reasonRestarting is the reason of Reconciling from just before a Deployment is
// restarted until status says that it was.
const reasonRestarting = "Restarting"

// announceRestart puts into status that a Deployment is about to be restarted for a
// slot. It is written before the restart, so that the time of the restart is known
// even if the answer to it, or the status that follows, is lost.
func announceRestart(obj *mtsrev1.Eru, slot, now time.Time) {
	conditions := &obj.Status.Conditions
	meta.RemoveStatusCondition(conditions, status.Reconciling) // It begins anew.
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type:               status.Reconciling,
		Status:             metav1.ConditionTrue,
		ObservedGeneration: obj.Generation,
		LastTransitionTime: metav1.NewTime(now),
		Reason:             reasonRestarting,
		Message:            restarting(slot),
	})
}

func restarting(slot time.Time) string {
	return fmt.Sprintf("the Deployment is being restarted for %s", written(slot))
}

// restartBegan completes the entry of a restart that is found done, with the time at
// which status had announced it.
func restartBegan(entries []mtsrev1.EruHistory, conditions []metav1.Condition) {
	announced := meta.FindStatusCondition(conditions, status.Reconciling)
	if announced == nil || announced.Reason != reasonRestarting {
		return
	}
	for i := range entries {
		entry := &entries[i]
		if entry.Result == mtsrev1.EruRestarted && entry.StartedAt == nil && announced.Message == restarting(entry.Slot.Time) {
			entry.StartedAt = new(announced.LastTransitionTime)
		}
	}
}
