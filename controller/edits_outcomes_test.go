// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const workers = 4

// outcomeCounter records the outcomes of cases, and the errors.
type outcomeCounter struct {
	mu       sync.Mutex
	outcomes map[string]string
	wrong    []string
}

func (t *outcomeCounter) add(what fmt.Stringer, r result, err error) {
	if err != nil {
		r = result{"wrong", []string{err.Error()}}
	}
	detail := strings.Join(r.detail, "; ")
	if r.outcome == "reported" && !slices.ContainsFunc(reports, func(e report) bool { return e.explains(what.String(), detail) }) {
		r.outcome = "wrongly reported"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.outcomes[what.String()] = r.outcome
	if strings.HasPrefix(r.outcome, "wrong") {
		t.wrong = append(t.wrong, fmt.Sprintf("%s: %s: %s", r.outcome, what, detail))
	}
}

// counts returns the number of cases by outcome.
func (t *outcomeCounter) counts() string {
	counts := map[string]int{}
	for _, outcome := range t.outcomes {
		counts[outcome]++
	}
	return fmt.Sprintf("%d cases: %v", len(t.outcomes), counts)
}

// A report is a status with which an edit may end that the operator cannot revert.
type report struct {
	// field is a part of the description of the case, words are a part of the status.
	field, words string
}

var reports = []report{
	// A child without the owner reference is never written, whichever manager removed that.
	{"metadata.ownerReferences", "NameConflict: "},
	// With another uid, the child is that of a deleted owner of the same name.
	{"metadata.ownerReferences", "WaitingForDeletion: "},
	// A create stores a list with the same key twice, but an apply does not. Admission refuses it.
	{" spec.podTemplate.", "duplicate entries for key"},
}

func (r report) explains(what, detail string) bool {
	return strings.Contains(what, r.field) && strings.Contains(detail, r.words)
}

// inParallel tries the cases, several at a time, fails if one is wrong, and returns the outcome
// of each.
func inParallel[T fmt.Stringer](cases []T, try func(*worker, T) (result, error)) map[string]string {
	GinkgoHelper()
	count := &outcomeCounter{outcomes: map[string]string{}}
	queue := make(chan T)
	var group sync.WaitGroup
	for n := range workers {
		s := &worker{namespace: newNamespace(), number: n}
		group.Go(func() {
			defer GinkgoRecover()
			for c := range queue {
				r, err := try(s, c)
				count.add(c, r, err)
			}
			Expect(s.leave(context.Background())).To(Succeed())
		})
	}
	for _, c := range cases {
		queue <- c
	}
	close(queue)
	group.Wait()
	slices.Sort(count.wrong)
	AddReportEntry("outcomes", count.counts())
	Expect(count.wrong).To(BeEmpty(), "%s\n%s", count.counts(), strings.Join(count.wrong, "\n"))
	return count.outcomes
}
