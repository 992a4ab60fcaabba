// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/schedules"
)

// Schedule sets the replicas of a valid object that is not paused to the number of spec.schedules
// whose time has passed last at an instant, unless its status has that time, and the number,
// already.
func Schedule(stored *unstructured.Unstructured, now time.Time) {
	obj := struct {
		Spec struct {
			Schedules []modelv1.Schedule `json:"schedules"`
		} `json:"spec"`
		Status struct {
			Schedule *modelv1.ScheduleStatus `json:"schedule"`
		} `json:"status"`
	}{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, &obj); err != nil {
		return
	}
	parsed, err := schedules.Parse(obj.Spec.Schedules)
	latest := parsed.Latest(now)
	done := obj.Status.Schedule
	if err != nil || latest.IsZero() || kinds.IsPaused(stored) || done != nil && (done.Time.After(latest.Time) || done.Time.Equal(new(metav1.NewTime(latest.Time))) && done.Replicas == latest.Replicas) {
		return
	}
	_ = unstructured.SetNestedField(stored.Object, int64(latest.Replicas), "spec", "replicas") // It has a spec.
}
