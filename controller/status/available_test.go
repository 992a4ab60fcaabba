// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSetAvailable(t *testing.T) {
	then, now := metav1.NewTime(time.Unix(1e9, 0)), metav1.NewTime(time.Unix(2e9, 0))
	was := metav1.Condition{
		Type: ConditionAvailable, Status: metav1.ConditionTrue, ObservedGeneration: 3, LastTransitionTime: then, Reason: "Yes", Message: "yes",
	}
	for _, test := range []struct {
		name    string
		before  []metav1.Condition
		set     Availability
		current bool
		want    metav1.Condition
	}{
		{"the first, of the current generation", nil, Availability{Status: metav1.ConditionTrue, Reason: "Yes", Message: "yes", Since: then}, true,
			metav1.Condition{Type: ConditionAvailable, Status: metav1.ConditionTrue, ObservedGeneration: 4, LastTransitionTime: then, Reason: "Yes", Message: "yes"}},
		{"the first, of an older generation", nil, Availability{Status: metav1.ConditionTrue, Reason: "Yes", Message: "yes"}, false,
			metav1.Condition{Type: ConditionAvailable, Status: metav1.ConditionTrue, ObservedGeneration: 3, LastTransitionTime: now, Reason: "Yes", Message: "yes"}},
		{"unchanged, of the current generation", []metav1.Condition{was}, Availability{Status: metav1.ConditionTrue, Reason: "Yes", Message: "yes"}, true,
			metav1.Condition{Type: ConditionAvailable, Status: metav1.ConditionTrue, ObservedGeneration: 4, LastTransitionTime: then, Reason: "Yes", Message: "yes"}},
		{"unchanged, and the child is not written yet", []metav1.Condition{was}, Availability{Status: metav1.ConditionTrue, Reason: "Yes", Message: "yes"}, false, was},
		{"changed, and the child is not written yet", []metav1.Condition{was}, Availability{Status: metav1.ConditionFalse, Reason: "No", Message: "no"}, false,
			metav1.Condition{Type: ConditionAvailable, Status: metav1.ConditionFalse, ObservedGeneration: 3, LastTransitionTime: now, Reason: "No", Message: "no"}},
		{"a reason that no condition may have", nil, Availability{Status: metav1.ConditionFalse, Reason: "not one word", Message: "no"}, true,
			metav1.Condition{Type: ConditionAvailable, Status: metav1.ConditionFalse, ObservedGeneration: 4, LastTransitionTime: now, Reason: "Unknown", Message: "no"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			conditions := test.before
			SetAvailable(&conditions, test.set, test.current, 4, now)
			if len(conditions) != 1 || conditions[0] != test.want {
				t.Errorf("conditions are %+v, want %+v", conditions, test.want)
			}
		})
	}
}
