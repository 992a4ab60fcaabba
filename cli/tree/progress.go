// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// The states of an object in its current generation. One that is Stalled needs a change to become Ready.
const (
	Ready    = "Ready"
	Stalled  = "Stalled"
	NotReady = "not ready"
	Unknown  = "not reconciled yet"
)

// State returns the state of an object.
func State(obj client.Object) string {
	ready, stalled := current(obj, status.ConditionReady), current(obj, status.ConditionStalled)
	switch {
	case ready == nil:
		return Unknown
	case ready.Status == metav1.ConditionTrue:
		return Ready
	case stalled != nil && stalled.Status == metav1.ConditionTrue:
		return Stalled
	}
	return NotReady
}

// current returns a condition if it is about the current generation.
func current(obj client.Object, name string) *metav1.Condition {
	condition := meta.FindStatusCondition(Conditions(obj), name)
	if condition == nil || condition.ObservedGeneration < obj.GetGeneration() {
		return nil
	}
	return condition
}

// Message returns the reason and the message of the condition that says most.
func Message(obj client.Object) string {
	for _, name := range []string{status.ConditionStalled, status.ConditionReady} {
		if c := current(obj, name); c != nil {
			return strings.TrimSuffix(c.Reason+": "+c.Message, ": ")
		}
	}
	return "waiting for the controller to reconcile the object"
}
