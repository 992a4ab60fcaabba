// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"reflect"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// The bounds of the schemas. The API server would refuse the whole status for one value above them.
const (
	maxMessage, maxReason                   = 32768, 1024
	maxConditions, maxHistory, maxProblems  = 16, 100, 5
	maxProblemMessage, maxProblemReason     = 1024, 128
	maxContainer                            = 63
	maxScheduleName, maxScheduledTimes      = 63, 3
	maxPendingReason                        = 64
	maxChildren, maxChildKind, maxChildHash = 8, 63, 64
	maxRewritten, maxPath                   = 3, 256
	maxFailed                               = 1024
)

// reason is the rule of metav1.Condition for reasons.
var reason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

const unknown = "Unknown"

// earliest and latest are the bounds of a time. JSON cannot hold the zero time, nor a year of more
// than four digits in UTC.
var earliest, latest = time.Unix(0, 0).UTC(), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

func outOfRange(t metav1.Time) bool { return t.Time.Before(earliest) || t.After(latest) }

// clamp changes a status, or a part of it, to what its schema and JSON can carry. Every status
// passes it when it is read and before it is written, and every condition when it is set: the
// conditions, times, messages and numbers of children, of pods and of the stored status come from
// other clients, and the API server does not check most of them.
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
	case *modelv1.ChildrenStatus:
		clampChildren(value)
	case *modelv1.RolloutStatus:
		clampHashes(&value.Complete, &value.Present)
		value.Failed = rules.Cut(value.Failed, maxFailed)
	case *modelv1.ScheduledReplicas:
		value.Name, value.Time = rules.Cut(value.Name, maxScheduleName), nearest(value.Time)
	case *modelv1.Problem:
		value.Reason, value.Message = rules.Cut(cmp.Or(value.Reason, unknown), maxProblemReason), rules.Cut(value.Message, maxProblemMessage)
		value.Container = rules.Cut(value.Container, maxContainer)
	default:
		clampEru(value)
		clampList(value)
	}
	clampParts(v)
}

// clampEru changes what the status of an Eru has beside conditions.
func clampEru(part any) {
	switch value := part.(type) {
	case *mtsrev1.EruHistory:
		value.Slot, value.Reason = nearest(value.Slot), rules.Cut(value.Reason, maxReason)
	case *mtsrev1.EruPending:
		value.Slot, value.Since = nearest(value.Slot), nearest(value.Since)
		value.Reason, value.Message = rules.Cut(cmp.Or(value.Reason, unknown), maxPendingReason), rules.Cut(value.Message, mtsrev1.MaxPendingMessage)
	}
}

// results are those that a restart can have. Another version of the operator may have written others.
var results = []mtsrev1.EruResult{mtsrev1.EruRestarted, mtsrev1.EruSkipped, mtsrev1.EruResultFailed}

// clampList removes items that the schema refuses, and those of a list that is too long.
func clampList(list any) {
	switch value := list.(type) {
	case *[]metav1.Condition:
		clampConditions(value)
	case *[]mtsrev1.EruHistory:
		*value = slices.DeleteFunc(*value, func(h mtsrev1.EruHistory) bool { return !slices.Contains(results, h.Result) })
		*value = (*value)[:min(len(*value), maxHistory)]
	case *[]modelv1.ScheduledReplicas:
		*value = (*value)[:min(len(*value), maxScheduledTimes)]
	case *[]modelv1.Problem:
		*value = (*value)[:min(len(*value), maxProblems)]
	}
}

// clampChildren removes what the controller does not write, which costs a write of a child.
func clampChildren(value *modelv1.ChildrenStatus) {
	kinds := map[string]bool{}
	value.Children = slices.DeleteFunc(value.Children, func(c modelv1.ChildStatus) bool {
		invalid := c.Kind == "" || !fits(c.Kind, maxChildKind) || !fits(c.Desired, maxChildHash) || !fits(c.Stored, maxChildHash) ||
			len(c.Rewritten) > maxRewritten || slices.ContainsFunc(c.Rewritten, func(path string) bool { return !fits(path, maxPath) })
		if invalid || kinds[c.Kind] || len(kinds) == maxChildren {
			return true
		}
		kinds[c.Kind] = true
		return false
	})
	if !fits(value.Configuration, modelv1.MaxConfiguration) {
		value.Configuration = ""
	}
	clampHashes(&value.Template, &value.KeptTemplate)
}

// clampHashes removes what is no hash that the controller writes.
func clampHashes(values ...*string) {
	for _, value := range values {
		if !fits(*value, maxChildHash) {
			*value = ""
		}
	}
}

// fits reports whether a text has at most so many bytes, also in JSON, which has no other text than
// UTF-8.
func fits(text string, most int) bool { return len(text) <= most && utf8.ValidString(text) }

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
