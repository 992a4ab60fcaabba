// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// The condition types. Ready is present from the first reconcile on, as ConditionAvailable is for
// the kinds with pods; the others are
// present only while they are true, as kstatus reads them
// (https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md).
const (
	ConditionReady       = "Ready"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
	ConditionPaused      = "Paused"
)

// The reasons that all kinds share.
const (
	ReasonReady              = "Ready"
	ReasonProgressing        = "Progressing"
	ReasonPaused             = "Paused"
	ReasonNameConflict       = "NameConflict"
	ReasonInvalidSpec        = "InvalidSpec"
	ReasonChildRefused       = "ChildRefused"
	ReasonContested          = "Contested"
	ReasonReplicaFailure     = "ReplicaFailure"
	ReasonProgressDeadline   = "ProgressDeadlineExceeded"
	ReasonTerminating        = "Terminating"
	ReasonWaitingForDeletion = "WaitingForDeletion"
)

// maxMessage is the maximum length of a condition's message in characters, which
// metav1.Condition and the schema of each kind have. The API server would refuse the whole
// status for a longer message, so it is cut where it is set.
const maxMessage = 32768

// IsObserved reports whether a status is one of the current spec of a child, from the generation
// of the child and the one in its status.
func IsObserved(generation, observed int64) bool { return generation > 0 && observed >= generation }

// Readiness is the observed state of an object in the form of its conditions: whether it
// is Ready, and if it is not, whether it progresses (Reconciling) or needs a change from
// outside (Stalled).
type Readiness struct {
	Ready       bool
	Reconciling bool
	Stalled     bool
	// Reason is one word in CamelCase. Message is a sentence that says what to do.
	Reason  string
	Message string
}

// NewReady returns the readiness of an object whose observed state is the desired state.
func NewReady(message string) Readiness {
	return Readiness{Ready: true, Reason: ReasonReady, Message: message}
}

// NewReconciling returns the readiness of an object that progresses by itself.
func NewReconciling(reason, message string) Readiness {
	return Readiness{Reconciling: true, Reason: reason, Message: message}
}

// Progressing returns the readiness of an object whose children have been applied and are
// not available yet, with a formatted message.
func Progressing(format string, args ...any) Readiness {
	return NewReconciling(ReasonProgressing, fmt.Sprintf(format, args...))
}

// NewStalled returns the readiness of an object that progresses only after a change of its
// spec or of the cluster.
func NewStalled(reason, message string) Readiness {
	return Readiness{Stalled: true, Reason: reason, Message: message}
}

// AppendMessage appends a sentence to the message, unless it is empty.
func (r *Readiness) AppendMessage(sentence string) {
	if sentence != "" {
		r.Message += "; " + sentence
	}
}

// WithSpecErrors returns the readiness with the errors of a spec appended to the message.
// Such a spec was stored while the webhook was away, or before a rule existed, and was
// reconciled all the same. The reason InvalidSpec means that the message has them already.
func (r Readiness) WithSpecErrors(errs field.ErrorList) Readiness {
	if len(errs) > 0 && r.Reason != ReasonInvalidSpec {
		r.AppendMessage("admission would refuse this spec today: " + rules.FormatErrors(errs))
	}
	return r
}

// SetConditions sets the conditions of an object of the given generation.
func (r Readiness) SetConditions(conditions *[]metav1.Condition, generation int64, now metav1.Time) {
	set := func(conditionType string, value bool) {
		condition := metav1.Condition{
			Type:               conditionType,
			Status:             metav1.ConditionFalse,
			ObservedGeneration: generation,
			LastTransitionTime: now,
			Reason:             r.Reason,
			Message:            rules.Cut(r.Message, maxMessage),
		}
		if value {
			condition.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(conditions, condition)
	}
	setWhileTrue := func(conditionType string, value bool) {
		if value {
			set(conditionType, true)
			return
		}
		remove(conditions, conditionType)
	}
	set(ConditionReady, r.Ready)
	setWhileTrue(ConditionReconciling, r.Reconciling)
	setWhileTrue(ConditionStalled, r.Stalled)
}

// remove removes a condition. meta.RemoveStatusCondition copies the list in any case.
func remove(conditions *[]metav1.Condition, conditionType string) {
	if meta.FindStatusCondition(*conditions, conditionType) != nil {
		meta.RemoveStatusCondition(conditions, conditionType)
	}
}

// SetPaused sets the condition Paused of an object, or removes it.
func SetPaused(conditions *[]metav1.Condition, paused bool, generation int64, now metav1.Time) {
	if !paused {
		remove(conditions, ConditionPaused)
		return
	}
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type:               ConditionPaused,
		Status:             metav1.ConditionTrue,
		ObservedGeneration: generation,
		LastTransitionTime: now,
		Reason:             ReasonPaused,
		Message:            "spec.paused is true: nothing is written for this object; its pods keep running",
	})
}
