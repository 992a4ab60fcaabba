// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// ConditionAvailable is present from the first reconcile on, as Ready is. It says whether the
// pods of an object are available, whatever template they run: during a rollout it can be True
// while Ready is False. kstatus does not read it.
const ConditionAvailable = "Available"

// Availability is the observed state of the child of an object in the form of the condition
// Available.
type Availability struct {
	Status metav1.ConditionStatus
	// Reason is one word in CamelCase. Message is a sentence.
	Reason, Message string
	// Since is when Status became what it is; zero if that is not known.
	Since metav1.Time
}

// NotObserved returns the availability of an object whose child of the given kind, such as
// Deployment, has no observed state yet.
func NotObserved(child string, generation int64) Availability {
	return Availability{Status: metav1.ConditionUnknown, Reason: ReasonProgressing, Message: NotObservedYet(child, generation)}
}

// NotObservedYet says that the status of a child is not one of its generation.
func NotObservedYet(child string, generation int64) string {
	return fmt.Sprintf("waiting for the %s controller to observe generation %d", child, generation)
}

// NoChild returns the availability of an object that has no child of the given kind. readiness
// says why.
func NoChild(child string, readiness Readiness) Availability {
	return Availability{Status: metav1.ConditionFalse, Reason: readiness.Reason, Message: "there is no " + child + ": " + readiness.Message}
}

// SetAvailable sets the condition Available of an object of the given generation. current says
// that the availability is one of a child which was written for this generation. If it is not,
// observedGeneration stays as it is, so that "kubectl wait" continues to wait.
func SetAvailable(conditions *[]metav1.Condition, a Availability, current bool, generation int64, now metav1.Time) {
	if a.Since.IsZero() {
		a.Since = now
	}
	if existing := meta.FindStatusCondition(*conditions, ConditionAvailable); !current && existing != nil {
		generation = existing.ObservedGeneration
	} else if !current {
		generation--
	}
	if !isReason(a.Reason) {
		a.Reason = "Unknown"
	}
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type:               ConditionAvailable,
		Status:             a.Status,
		ObservedGeneration: generation,
		LastTransitionTime: a.Since,
		Reason:             a.Reason,
		Message:            rules.Cut(a.Message, maxMessage),
	})
}

// reason is the rule of metav1.Condition for reasons. The API server would refuse the whole status
// for another one, and the status of a child can have any.
var reason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

func isReason(text string) bool { return len(text) <= 1024 && reason.MatchString(text) }
