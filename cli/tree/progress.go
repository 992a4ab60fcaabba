// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// State is how far the reconciliation of an object is.
type State int

const (
	// Unknown is that no condition is about the current generation yet.
	Unknown State = iota
	// Progressing is that the object is neither Ready nor Stalled.
	Progressing
	// Succeeded is that the object is Ready.
	Succeeded
	// Failed is that the object is Stalled: it needs a change to become Ready.
	Failed
)

// Outcome returns the state of an object in its current generation.
func Outcome(obj client.Object) State {
	ready, stalled := current(obj, status.ConditionReady), current(obj, status.ConditionStalled)
	switch {
	case ready == nil:
		return Unknown
	case ready.Status == metav1.ConditionTrue:
		return Succeeded
	case stalled != nil && stalled.Status == metav1.ConditionTrue:
		return Failed
	}
	return Progressing
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

// barWidth is the number of characters of a progress bar.
const barWidth = 20

// Progress returns the progress of a rollout on one line, with a bar for kinds with pods.
func Progress(obj client.Object) string {
	c, ok := countersOf(obj)
	if !ok {
		return fmt.Sprintf("%s  %s", Ready(obj), Message(obj))
	}
	return fmt.Sprintf("[%s] %d of %d updated, %d available  %s", c.bar(), c.updated, c.desired, c.available, Message(obj))
}

// bar draws what is updated and available as #, and what is only updated as =.
func (c counters) bar() string {
	if c.desired <= 0 {
		return strings.Repeat("#", barWidth)
	}
	width := func(n int32) int { return int(int64(min(max(n, 0), c.desired)) * barWidth / int64(c.desired)) }
	updated := width(c.updated)
	done := min(updated, width(c.available))
	return strings.Repeat("#", done) + strings.Repeat("=", updated-done) + strings.Repeat(".", barWidth-updated)
}
