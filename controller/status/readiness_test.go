// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

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
