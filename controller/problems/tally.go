// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// maxProblems is the bound of status.problems, maxFound that of the different problems that are
// held during a read.
const maxProblems, maxFound = 5, 50

// tally has the problems that were found. Pods with the same reason for one container have one.
type tally []modelv1.Problem

// add adds a problem, which may be nil. The message of the first of several is quoted.
func (t *tally) add(p *modelv1.Problem) {
	if p == nil {
		return
	}
	for i := range *t {
		if known := &(*t)[i]; known.Container == p.Container && known.Reason == p.Reason {
			known.Count += p.Count
			known.Since = earliest(known.Since, p.Since)
			return
		}
	}
	if len(*t) < maxFound {
		*t = append(*t, *p)
	}
}

// first returns the first problems: those that need intervention, then those of most pods.
func (t tally) first() []modelv1.Problem {
	slices.SortFunc(t, func(a, b modelv1.Problem) int {
		return cmp.Or(cmp.Compare(rank(a.Reason), rank(b.Reason)), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Container, b.Container), cmp.Compare(a.Reason, b.Reason))
	})
	return t[:min(len(t), maxProblems)]
}

// rank is the place of a reason among others.
func rank(reason string) int {
	switch {
	case reason == status.ReasonReplicaFailure:
		return 0
	case needIntervention.Has(reason):
		return 1
	}
	return 2
}

// earliest returns the earlier one of two times; one that is not set does not count.
func earliest(a, b metav1.Time) metav1.Time {
	if a.IsZero() || !b.IsZero() && b.Before(&a) {
		return b
	}
	return a
}
