// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func at(minute int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC))
}

func TestSetKeepsOnlyWhatIsTrue(t *testing.T) {
	var conditions []metav1.Condition
	NewReconciling("Progressing", "1 of 2").SetConditions(&conditions, 1, at(0))
	NewReconciling("Progressing", "2 of 2").SetConditions(&conditions, 2, at(1))
	want := []metav1.Condition{
		{Type: ConditionReady, Status: "False", Reason: "Progressing", Message: "2 of 2", ObservedGeneration: 2, LastTransitionTime: at(0)},
		{Type: ConditionReconciling, Status: "True", Reason: "Progressing", Message: "2 of 2", ObservedGeneration: 2, LastTransitionTime: at(0)},
	}
	if diff := cmp.Diff(want, conditions); diff != "" {
		t.Errorf("reconciling (-want +got):\n%s", diff)
	}

	NewStalled("Broken", "mend it").SetConditions(&conditions, 2, at(2))
	want = []metav1.Condition{
		{Type: ConditionReady, Status: "False", Reason: "Broken", Message: "mend it", ObservedGeneration: 2, LastTransitionTime: at(0)},
		{Type: ConditionStalled, Status: "True", Reason: "Broken", Message: "mend it", ObservedGeneration: 2, LastTransitionTime: at(2)},
	}
	if diff := cmp.Diff(want, conditions); diff != "" {
		t.Errorf("stalled (-want +got):\n%s", diff)
	}

	NewReady("all there").SetConditions(&conditions, 3, at(3))
	want = []metav1.Condition{
		{Type: ConditionReady, Status: "True", Reason: "Ready", Message: "all there", ObservedGeneration: 3, LastTransitionTime: at(3)},
	}
	if diff := cmp.Diff(want, conditions); diff != "" {
		t.Errorf("ready (-want +got):\n%s", diff)
	}
}

func TestSetPaused(t *testing.T) {
	var conditions []metav1.Condition
	SetPaused(&conditions, true, 4, at(0))
	if len(conditions) != 1 || conditions[0].Type != ConditionPaused || conditions[0].Status != metav1.ConditionTrue || conditions[0].ObservedGeneration != 4 {
		t.Errorf("paused: %+v", conditions)
	}
	SetPaused(&conditions, false, 5, at(1))
	if len(conditions) != 0 {
		t.Errorf("not paused: %+v", conditions)
	}
}

func TestAMessageIsNeverLongerThanAConditionTakes(t *testing.T) {
	var conditions []metav1.Condition
	for _, character := range []string{"a", "箱"} {
		NewStalled(ReasonChildRefused, strings.Repeat(character, 100_000)).SetConditions(&conditions, 1, at(0))
		for _, condition := range conditions {
			if n := utf8.RuneCountInString(condition.Message); n > maxMessage || n < maxMessage/4 {
				t.Errorf("the message of %s has %d characters, want at most %d and not much less", condition.Type, n, maxMessage)
			}
		}
	}
}

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
		{"a time that JSON does not have", nil, Availability{Status: metav1.ConditionTrue, Reason: "Yes", Message: "yes", Since: metav1.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600))}, true,
			metav1.Condition{Type: ConditionAvailable, Status: metav1.ConditionTrue, ObservedGeneration: 4, LastTransitionTime: metav1.NewTime(latest), Reason: "Yes", Message: "yes"}},
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
