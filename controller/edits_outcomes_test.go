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

// tally keeps the outcomes of cases, and what is wrong with them.
type tally struct {
	mu       sync.Mutex
	outcomes map[string]string
	wrong    []string
}

func (t *tally) add(what fmt.Stringer, r result, err error) {
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

// counts are the outcomes in words.
func (t *tally) counts() string {
	counts := map[string]int{}
	for _, outcome := range t.outcomes {
		counts[outcome]++
	}
	return fmt.Sprintf("%d cases: %v", len(t.outcomes), counts)
}

// A report is a status with which a difference may end, where the operator can do no
// better.
type report struct {
	// field is a part of the case's description, words are a part of the status.
	field, words string
}

var reports = []report{
	// A child that is not the owner's is never written, whichever manager changed its owner.
	{"metadata.ownerReferences", "NameConflict: "},
	// With another uid, the child is that of a deleted owner of the same name.
	{"metadata.ownerReferences", "WaitingForDeletion: "},
	// A create stores what has the same key twice, but no apply does. Admission refuses it.
	{" spec.podTemplate.", "duplicate entries for key"},
}

func (r report) explains(what, detail string) bool {
	return strings.Contains(what, r.field) && strings.Contains(detail, r.words)
}

// inParallel tries each case, several at a time, fails with those that are wrong, and
// returns the outcome of each.
func inParallel[T fmt.Stringer](cases []T, try func(*stage, T) (result, error)) map[string]string {
	GinkgoHelper()
	count := &tally{outcomes: map[string]string{}}
	queue := make(chan T)
	var group sync.WaitGroup
	for n := range workers {
		s := &stage{namespace: newNamespace(), number: n}
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
