// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
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

// SetNotReady makes an object not ready whose pods do not have all that is desired: because admission rewrote some of it,
// which stays so (stalled), or because something waits. The sentence says what; it is empty if nothing is missing.
func (r *Readiness) SetNotReady(reason, sentence string, stalled bool) {
	if sentence != "" && r.Ready {
		r.Ready, r.Stalled, r.Reason = false, stalled, reason
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

// SetAvailable sets the condition Available of an object of the given generation to the availability
// of its child, of which the transition time is zero if that is not known. current says
// that the availability is one of a child which was written for this generation. If it is not,
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

// The bounds of the schemas. The API server would refuse the whole status for one value above them.
const (
	maxMessage, maxReason                  = 32768, 1024
	maxConditions, maxHistory, maxProblems = 16, 100, 5
	maxProblemMessage, maxProblemReason    = 1024, 128
	maxContainer                           = 63
	maxScheduleName, maxScheduledTimes     = 63, 3
)

// reason is the rule of metav1.Condition for reasons.
var reason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

const unknown = "Unknown"

// earliest and latest are the bounds of a time. JSON cannot hold the zero time, nor a year of more than four
// digits in UTC.
var earliest, latest = time.Unix(0, 0).UTC(), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

func outOfRange(t metav1.Time) bool { return t.Time.Before(earliest) || t.After(latest) }

// clamp changes a status, or a part of it, to what its schema and JSON can carry. Every status passes it when
// it is read and before it is written, and every condition when it is set: the conditions, times, messages and
// numbers of children, of pods and of the stored status come from other clients, and the API server does not
// check most of them.
func clamp(v reflect.Value) {
	switch value := v.Addr().Interface().(type) {
	case *metav1.Time: // Without a value, unless it is required.
		if outOfRange(*value) {
			*value = metav1.Time{}
		}
		return
	case **metav1.Time:
		if *value != nil && outOfRange(**value) {
			*value = nil
		}
		return
	case *metav1.Condition:
		clampCondition(value)
	case *mtsrev1.EruHistory:
		value.Slot, value.Reason = nearest(value.Slot), rules.Cut(value.Reason, maxReason)
	case *modelv1.ScheduledReplicas:
		value.Name, value.Time = rules.Cut(value.Name, maxScheduleName), nearest(value.Time)
	case *modelv1.Problem:
		value.Reason, value.Message = rules.Cut(cmp.Or(value.Reason, unknown), maxProblemReason), rules.Cut(value.Message, maxProblemMessage)
		value.Container = rules.Cut(value.Container, maxContainer)
	default:
		clampList(value)
	}
	clampParts(v)
}

// clampList removes items from a list that is too long.
func clampList(list any) {
	switch value := list.(type) {
	case *[]metav1.Condition:
		clampConditions(value)
	case *[]mtsrev1.EruHistory:
		*value = (*value)[:min(len(*value), maxHistory)]
	case *[]modelv1.ScheduledReplicas:
		*value = (*value)[:min(len(*value), maxScheduledTimes)]
	case *[]modelv1.Problem:
		*value = (*value)[:min(len(*value), maxProblems)]
	}
}

func clampParts(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for _, part := range v.Fields() {
			clamp(part)
		}
	case reflect.Slice:
		for i := range v.Len() {
			clamp(v.Index(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			clamp(v.Elem())
		}
	case reflect.Int32, reflect.Int64:
		v.SetInt(max(v.Int(), 0))
	}
}

// clampConditions removes conditions of other clients from a list that these have filled.
func clampConditions(list *[]metav1.Condition) {
	for len(*list) > maxConditions {
		foreign := slices.IndexFunc(*list, func(c metav1.Condition) bool { return !slices.Contains(ownConditions, c.Type) })
		*list = slices.Delete(*list, max(foreign, 0), max(foreign, 0)+1)
	}
}

func clampCondition(c *metav1.Condition) {
	switch c.Status {
	case metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown:
	default:
		c.Status = metav1.ConditionUnknown
	}
	if len(c.Reason) > maxReason || !reason.MatchString(c.Reason) {
		c.Reason = unknown
	}
	c.Message, c.LastTransitionTime = rules.Cut(c.Message, maxMessage), nearest(c.LastTransitionTime)
}

// nearest returns a time that is required, and therefore never without a value.
func nearest(t metav1.Time) metav1.Time {
	switch {
	case t.Time.Before(earliest):
		t.Time = earliest
	case t.After(latest):
		t.Time = latest
	}
	return t
}
