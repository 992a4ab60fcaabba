// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// The condition types. Ready is present from the first reconcile on, as ConditionAvailable is for
// the kinds with pods; the others are
// present only while they are true, as kstatus reads them
// (https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md).
const (
	ConditionReady       = api.ConditionReady
	ConditionReconciling = "Reconciling"
	ConditionStalled     = api.ConditionStalled
	ConditionPaused      = "Paused"
	// ConditionModelDiffers is that pods serve different bytes of a model. Ready does not depend on it.
	ConditionModelDiffers = "ModelDiffers"
)

// The reasons that all kinds share.
const (
	ReasonReady              = "Ready"
	ReasonProgressing        = "Progressing"
	ReasonPaused             = "Paused"
	ReasonNameConflict       = "NameConflict"
	ReasonConflict           = "Conflict"
	ReasonInvalidSpec        = "InvalidSpec"
	ReasonChildRefused       = "ChildRefused"
	ReasonContested          = "Contested"
	ReasonRewritten          = "Rewritten"
	ReasonReplicaFailure     = "ReplicaFailure"
	ReasonProgressDeadline   = "ProgressDeadlineExceeded"
	ReasonTerminating        = "Terminating"
	ReasonWaitingForDeletion = "WaitingForDeletion"
	ReasonFrozen             = "Frozen"
	ReasonForbidden          = "Forbidden"
	ReasonReconcileError     = "ReconcileError"
	ReasonDigestsDiffer      = "DigestsDiffer"
)

// ownConditions are the types of all conditions that the operator sets.
var ownConditions = []string{ConditionReady, ConditionAvailable, ConditionReconciling, ConditionStalled, ConditionPaused, ConditionModelDiffers}

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

// Error makes a readiness the error of what keeps an object from its desired state, and has a
// meaning for its status alone: a retry before the next watch event is of no use.
func (r Readiness) Error() string { return r.Message }

// HasReason reports whether an error is a readiness with a reason.
func HasReason(err error, reason string) bool {
	readiness, ok := errors.AsType[Readiness](err)
	return ok && readiness.Reason == reason
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

// SetNotReady makes an object not ready whose pods do not have all that is desired: because
// admission rewrote some of it, which stays so (stalled), or because something waits. The sentence
// says what; it is empty if nothing is missing.
func (r *Readiness) SetNotReady(reason, sentence string, stalled bool) {
	if sentence != "" && r.Ready {
		r.Ready, r.Stalled, r.Reason = false, stalled, reason
	}
	r.AppendMessage(sentence)
}

// WithSpecErrors returns the readiness with the errors of a spec appended to the message, not ready
// if one of its fields is not in effect. Such a spec was stored while the webhook was away, or
// before a rule existed, and was reconciled all the same. The reason InvalidSpec means that the
// message has them already.
func (r Readiness) WithSpecErrors(errs field.ErrorList) Readiness {
	if len(errs) == 0 || r.Reason == ReasonInvalidSpec {
		return r
	}
	sentence := "spec is invalid under the current rules: " + rules.FormatErrors(errs)
	if len(rules.Ineffective(errs)) > 0 {
		r.SetNotReady(ReasonInvalidSpec, sentence, true)
	} else {
		r.AppendMessage(sentence)
	}
	return r
}

// SetConditions sets the conditions of an object of the given generation.
func (r Readiness) SetConditions(conditions *[]metav1.Condition, generation int64, now metav1.Time) {
	condition := metav1.Condition{
		Type:               ConditionReady,
		Status:             metav1.ConditionFalse,
		ObservedGeneration: generation,
		LastTransitionTime: now,
		Reason:             r.Reason,
		Message:            r.Message,
	}
	if r.Ready {
		condition.Status = metav1.ConditionTrue
	}
	SetCondition(conditions, condition)
	condition.Type = ConditionReconciling
	setWhile(r.Reconciling, conditions, condition)
	condition.Type = ConditionStalled
	setWhile(r.Stalled, conditions, condition)
}

// setWhile sets a condition to True while value is true, and removes it otherwise.
func setWhile(value bool, conditions *[]metav1.Condition, condition metav1.Condition) {
	if !value {
		meta.RemoveStatusCondition(conditions, condition.Type)
		return
	}
	condition.Status = metav1.ConditionTrue
	SetCondition(conditions, condition)
}

// SetPaused sets the condition Paused of an object, or removes it.
func SetPaused(conditions *[]metav1.Condition, paused bool, generation int64, now metav1.Time) {
	setWhile(paused, conditions, metav1.Condition{
		Type:               ConditionPaused,
		ObservedGeneration: generation,
		LastTransitionTime: now,
		Reason:             ReasonPaused,
		Message:            "spec.paused is true: nothing is written for this object; its pods keep running",
	})
}

// SetModelDiffers sets the condition ModelDiffers of an object, or removes it if nothing differs.
func SetModelDiffers(conditions *[]metav1.Condition, differ string, generation int64, now metav1.Time) {
	setWhile(differ != "", conditions, metav1.Condition{
		Type:               ConditionModelDiffers,
		ObservedGeneration: generation,
		LastTransitionTime: now,
		Reason:             ReasonDigestsDiffer,
		Message:            "the pods that were read serve different bytes: " + differ + "; pin the model, or restart the pods",
	})
}
