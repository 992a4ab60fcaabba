// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"fmt"
	"slices"
	"strings"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// Result is what is known of the pods of an object that is not ready.
type Result struct {
	// Problems are at most 5.
	Problems []modelv1.Problem
	// Note says what could not be read.
	Note string
}

// describe returns the readiness of an object with the result: the first problem is added to the
// message, and if it needs intervention, the object is stalled for its reason. A Deployment whose
// pods are refused is stalled already, with the same message.
func (r *Result) describe(readiness status.Readiness) status.Readiness {
	if len(r.Problems) > 0 {
		first := &r.Problems[0]
		if first.Reason != status.ReasonReplicaFailure || readiness.Reason != status.ReasonReplicaFailure {
			readiness.AppendMessage(Sentence(first))
		}
		switch {
		case needIntervention.Has(first.Reason):
			readiness.Reason, readiness.Stalled, readiness.Reconciling = first.Reason, true, false
		case r.isFetching() && readiness.Reason == status.ReasonProgressing:
			readiness.Reason = first.Reason
		}
	}
	readiness.AppendMessage(r.Note)
	return readiness
}

func (r *Result) crashes() bool {
	return len(r.Problems) > 0 && (r.Problems[0].Reason == reasonCrashLoopBackOff || r.Problems[0].Reason == reasonOOMKilled)
}

func (r *Result) isFetching() bool {
	return len(r.Problems) > 0 && r.Problems[0].Reason == reasonFetchingModel
}

// mergePrevious keeps of the previous result what the same problem has again: since when, because
// a container may have become ready for a moment, and a message that differs only in words that
// may be a time or an identifier: long ones with a digit.
func (r *Result) mergePrevious(previous []modelv1.Problem) {
	stable := func(message string) []string {
		return slices.DeleteFunc(strings.Fields(message), func(word string) bool {
			return len(word) >= 8 && strings.ContainsAny(word, "0123456789")
		})
	}
	for i := range r.Problems {
		p := &r.Problems[i]
		for _, before := range previous {
			if before.Container == p.Container && before.Reason == p.Reason {
				p.Since = earliest(p.Since, before.Since)
				if slices.Equal(stable(p.Message), stable(before.Message)) {
					p.Message = before.Message
				}
			}
		}
	}
}

// Sentence returns a problem for the message of a condition.
func Sentence(p *modelv1.Problem) string {
	pods := fmt.Sprintf("%d pods", p.Count)
	if p.Count == 1 {
		pods = "1 pod"
	}
	switch {
	case p.Container != "":
		return fmt.Sprintf("%s (container %q of %s): %s", p.Reason, p.Container, pods, p.Message)
	case p.Count > 0:
		return fmt.Sprintf("%s (%s): %s", p.Reason, pods, p.Message)
	}
	return p.Reason + ": " + p.Message
}
