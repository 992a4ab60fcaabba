// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionAvailable is present from the first reconcile on, as Ready is. It says whether the
// pods of an object are available, whatever template they run: during a rollout it can be True
// while Ready is False. kstatus does not read it.
const ConditionAvailable = "Available"

// NotObserved returns the availability of an object whose child of the given kind, such as
// Deployment, has no observed state yet.
func NotObserved(child string, generation int64) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionUnknown, Reason: ReasonProgressing, Message: NotObservedYet(child, generation)}
}

// NotObservedYet says that the status of a child is not one of its generation.
func NotObservedYet(child string, generation int64) string {
	return fmt.Sprintf("waiting for the %s controller to observe generation %d", child, generation)
}

// NoChild returns the availability of an object that has no child of the given kind. readiness
// says why.
func NoChild(child string, readiness Readiness) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: readiness.Reason, Message: "there is no " + child + ": " + readiness.Message}
}

// SetAvailable sets the condition Available of an object of the given generation to the
// availability of its child, of which the transition time is zero if that is not known. current
// says that the availability is one of a child which was written for this generation. If it is not,
// observedGeneration stays as it is, so that "kubectl wait" continues to wait.
func SetAvailable(conditions *[]metav1.Condition, available metav1.Condition, current bool, generation int64, now metav1.Time) {
	if available.LastTransitionTime.IsZero() {
		available.LastTransitionTime = now
	}
	if existing := meta.FindStatusCondition(*conditions, ConditionAvailable); !current && existing != nil {
		generation = existing.ObservedGeneration
	} else if !current {
		generation--
	}
	available.Type, available.ObservedGeneration = ConditionAvailable, generation
	SetCondition(conditions, available)
}
