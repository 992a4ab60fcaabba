// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The condition types. Ready is there from the first reconcile on; the others
// are there only while they are true, as kstatus reads them
// (https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md).
const (
	Ready       = "Ready"
	Reconciling = "Reconciling"
	Stalled     = "Stalled"
	Paused      = "Paused"
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

// maxMessage is the most characters of a condition's message: metav1.Condition has
// the bound, and with it the schema of each kind. A longer message would keep the
// whole status from being written, so it is cut where it is set.
const maxMessage = 32768

// Verdict is what there is to say of an object: the Ready condition, and whether
// something is on its way (Reconciling) or cannot go on by itself (Stalled).
type Verdict struct {
	Ready       bool
	Reconciling bool
	Stalled     bool
	// Reason is one CamelCase word, Message a sentence that a person can act on.
	Reason  string
	Message string
}

// Done is the verdict on an object that is as it was asked for.
func Done(message string) Verdict {
	return Verdict{Ready: true, Reason: ReasonReady, Message: message}
}

// Underway is the verdict on an object that is on its way.
func Underway(reason, message string) Verdict {
	return Verdict{Reconciling: true, Reason: reason, Message: message}
}

// Stuck is the verdict on an object that goes on only if somebody acts.
func Stuck(reason, message string) Verdict {
	return Verdict{Stalled: true, Reason: reason, Message: message}
}

// Add adds something to the message, if there is anything to add.
func (v *Verdict) Add(message string) {
	if message != "" {
		v.Message += "; " + message
	}
}

// Describe joins errors for a condition's message: the first 20 of them and the
// number of the others.
func Describe(errs field.ErrorList) string {
	const most = 20
	parts := make([]string, 0, min(len(errs), most)+1)
	for _, err := range errs[:min(len(errs), most)] {
		parts = append(parts, err.Error())
	}
	if more := len(errs) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// WithErrors adds to the message the errors of a spec that was built all the same: it
// was stored while the webhook was away, or before a rule existed. InvalidSpec has
// them already.
func (v Verdict) WithErrors(errs field.ErrorList) Verdict {
	if len(errs) > 0 && v.Reason != ReasonInvalidSpec {
		v.Add("admission would refuse this spec today: " + Describe(errs))
	}
	return v
}

// Set writes the verdict to the conditions of an object of this generation.
func (v Verdict) Set(conditions *[]metav1.Condition, generation int64, now metav1.Time) {
	set := func(conditionType string, value bool) {
		condition := metav1.Condition{
			Type:               conditionType,
			Status:             metav1.ConditionFalse,
			ObservedGeneration: generation,
			LastTransitionTime: now,
			Reason:             v.Reason,
			Message:            cut(v.Message, maxMessage),
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
		meta.RemoveStatusCondition(conditions, conditionType)
	}
	set(Ready, v.Ready)
	setWhileTrue(Reconciling, v.Reconciling)
	setWhileTrue(Stalled, v.Stalled)
}

// SetPaused says in the conditions whether the object is paused.
func SetPaused(conditions *[]metav1.Condition, paused bool, generation int64, now metav1.Time) {
	if !paused {
		meta.RemoveStatusCondition(conditions, Paused)
		return
	}
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type:               Paused,
		Status:             metav1.ConditionTrue,
		ObservedGeneration: generation,
		LastTransitionTime: now,
		Reason:             ReasonPaused,
		Message:            "spec.paused is true: nothing is written for this object; what runs goes on running",
	})
}
