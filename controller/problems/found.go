// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"fmt"
	"strings"
	"time"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// Found is what is known of the pods of an object that is not ready.
type Found struct {
	// Problems are at most 5, the worst first.
	Problems []modelv1.Problem
	// MissingNodes are the nodes without an available daemon, at most 10.
	MissingNodes []string
	// Human is true if the first problem cannot pass without a change from outside.
	Human bool
	// note says what could not be read.
	note string
}

// Describe returns the readiness of an object with what was found: the worst problem is added
// to the message, and if it needs a human, the object is stalled for its reason. A Deployment
// whose pods are refused is stalled already, with the same message.
func (f Found) Describe(r status.Readiness) status.Readiness {
	if len(f.Problems) > 0 {
		worst := &f.Problems[0]
		if worst.Reason != reasonReplicaFailure || r.Reason != status.ReasonReplicaFailure {
			r.AppendMessage(sentence(worst, f.Human))
		}
		switch {
		case f.Human:
			r.Reason, r.Stalled, r.Reconciling = worst.Reason, true, false
		case f.isFetching() && r.Reason == status.ReasonProgressing:
			r.Reason = worst.Reason
		}
	}
	r.AppendMessage(f.note)
	return r
}

// isFetching reports whether the first problem is that a model is being fetched.
func (f *Found) isFetching() bool {
	return len(f.Problems) > 0 && f.Problems[0].Reason == reasonFetchingModel
}

// sentence returns a problem for the message of a condition. For one that may pass by itself
// it says since when.
func sentence(p *modelv1.Problem, human bool) string {
	pods := fmt.Sprintf("%d pods", p.Count)
	if p.Count == 1 {
		pods = "1 pod"
	}
	var details []string
	switch {
	case p.Container != "":
		details = append(details, fmt.Sprintf("container %q of %s", p.Container, pods))
	case p.Count > 0:
		details = append(details, pods)
	}
	if !human && !p.Since.IsZero() {
		details = append(details, "since "+p.Since.UTC().Format(time.RFC3339))
	}
	text := p.Reason
	if len(details) > 0 {
		text += " (" + strings.Join(details, ", ") + ")"
	}
	return text + ": " + p.Message
}

// settle keeps of an earlier result what the pods do not say any more: a container that became
// ready for a moment has had its problem since before that, and an older kubelet does not
// repeat the registry's answer between two attempts.
func (f *Found) settle(earlier []modelv1.Problem) {
	for i := range f.Problems {
		p := &f.Problems[i]
		for j := range earlier {
			before := &earlier[j]
			if before.Container != p.Container || before.Reason != p.Reason {
				continue
			}
			p.Since = earliest(p.Since, before.Since)
			if isVague(p) && !isVague(before) {
				p.Message = before.Message
			}
			break
		}
	}
}

func isVague(p *modelv1.Problem) bool { return strings.HasPrefix(p.Message, "Back-off pulling image") }
