// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"reflect"

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
	ReasonRewritten          = "Rewritten"
	ReasonReplicaFailure     = "ReplicaFailure"
	ReasonProgressDeadline   = "ProgressDeadlineExceeded"
	ReasonTerminating        = "Terminating"
	ReasonWaitingForDeletion = "WaitingForDeletion"
)

// ownConditions are the types of all conditions that the operator sets.
var ownConditions = []string{ConditionReady, ConditionAvailable, ConditionReconciling, ConditionStalled, ConditionPaused}

// SetCondition is meta.SetStatusCondition for what may be copied from another object.
func SetCondition(conditions *[]metav1.Condition, condition metav1.Condition) {
	clamp(reflect.ValueOf(&condition).Elem())
	meta.SetStatusCondition(conditions, condition)
}

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

// SetRewritten makes an object not ready whose children do not have all their desired values,
// because admission rewrote some. The sentence names these; it is empty if there are none.
func (r *Readiness) SetRewritten(sentence string) {
	if sentence != "" && r.Ready {
		r.Ready, r.Stalled, r.Reason = false, true, ReasonRewritten
	}
	r.AppendMessage(sentence)
}

// WithSpecErrors returns the readiness with the errors of a spec appended to the message.
// Such a spec was stored while the webhook was away, or before a rule existed, and was
// reconciled all the same. The reason InvalidSpec means that the message has them already.
func (r Readiness) WithSpecErrors(errs field.ErrorList) Readiness {
	if len(errs) > 0 && r.Reason != ReasonInvalidSpec {
		r.AppendMessage("spec is invalid under the current rules: " + rules.FormatErrors(errs))
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
			Message:            r.Message,
		}
		if value {
			condition.Status = metav1.ConditionTrue
		}
		SetCondition(conditions, condition)
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
	SetCondition(conditions, metav1.Condition{
		Type:               ConditionPaused,
		Status:             metav1.ConditionTrue,
		ObservedGeneration: generation,
		LastTransitionTime: now,
		Reason:             ReasonPaused,
		Message:            "spec.paused is true: nothing is written for this object; its pods keep running",
	})
}

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
	SetCondition(conditions, metav1.Condition{
		Type:               ConditionAvailable,
		Status:             a.Status,
		ObservedGeneration: generation,
		LastTransitionTime: a.Since,
		Reason:             a.Reason,
		Message:            a.Message,
	})
}
