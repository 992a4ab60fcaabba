// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// warning returns the condition that is worth a Warning event, nil if there is none: the object
// needs a change from outside for another reason than before. A status that stays the same is
// not worth an event, and neither is an object's own spec.paused.
func (r *recorder[T]) warning(obj T, before string) *metav1.Condition {
	conditions := obj.GetConditions()
	ready := meta.FindStatusCondition(conditions, ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue || ready.Reason == ReasonPaused || ready.Reason == before ||
		meta.IsStatusConditionTrue(conditions, ConditionReconciling) {
		return nil
	}
	return ready.DeepCopy() // The response to the write is decoded into obj.
}

// emit emits a Warning event, with as much of the message as an event holds: 1 kB.
func (r *recorder[T]) emit(obj T, warning *metav1.Condition) {
	if warning != nil {
		r.events.Eventf(obj, nil, corev1.EventTypeWarning, warning.Reason, "Reconcile", "%s", rules.Cut(warning.Message, 1000))
	}
}

// readyReason returns the reason of the Ready condition, "" if there is none.
func readyReason(obj Object) string {
	if ready := meta.FindStatusCondition(obj.GetConditions(), ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}
