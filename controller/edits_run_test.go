// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// attempts are all edits of all children. An edit of the same place of a type, of a
// value that the operator owns or does not own, is listed once, however many objects
// have it.
func attempts(ctx context.Context, all schemas, s *stage) ([]attempt, error) {
	owners, err := readOwners()
	if err != nil {
		return nil, err
	}
	values, err := readSamples("testdata/samples.yaml")
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var found []attempt
	for _, of := range owners {
		object, desired, err := s.bring(ctx, of.manifest)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", of.name, err)
		}
		for _, kind := range sortedKeys(desired) {
			live, err := s.read(ctx, kind, object)
			if err != nil {
				return nil, err
			}
			for _, e := range editsOf(all, values, live) {
				owned := ownedAt(all, all.typeOf(live), desired[kind], live, e.at)
				place := fmt.Sprint(kind, " ", e.place, owned)
				if seen[place] {
					continue
				}
				seen[place] = true
				for _, way := range sortedKeys(ways) {
					found = append(found, attempt{owner: of, kind: kind, way: way, fieldEdit: e})
				}
			}
		}
	}
	return found, nil
}

// editsOf are the edits of a child.
func editsOf(all schemas, values samples, live tree) []*fieldEdit {
	e := &editor{schemas: all, samples: values}
	object := stable(live)
	metadata := object["metadata"].(tree)
	for _, field := range []string{"labels", "annotations", "ownerReferences"} {
		if metadata[field] != nil {
			at := where{of: all.typeOf(live)}.key(all, "metadata").key(all, field)
			e.walk(at, metadata[field])
		}
	}
	e.walk(where{of: all.typeOf(live)}.key(all, "spec"), object["spec"])
	return e.found
}

// ownedAt says whether the operator desires a value at a path.
func ownedAt(all schemas, t *typeSchema, desired, live any, at path) bool {
	for _, step := range at {
		switch step := step.(type) {
		case string:
			object, _ := desired.(tree)
			inner, _ := live.(tree)
			desired, live, t = object[step], inner[step], all.child(t, step)
		case int:
			list, _ := live.([]any)
			ours, _ := desired.([]any)
			if len(t.ListKeys) > 0 {
				desired, live = itemOf(t.ListKeys, ours, keyOf(t.ListKeys, list[step])), list[step]
			} else if step < len(ours) {
				desired, live = ours[step], list[step]
			}
			t = all.of(t.Items)
		}
	}
	return desired != nil
}

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
	if os.Getenv("MODELBOX_EDITS_LOG") != "" {
		f, _ := os.OpenFile(os.Getenv("MODELBOX_EDITS_LOG"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		fmt.Fprintf(f, "%s: %s: %s\n", r.outcome, what, detail)
		f.Close()
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
	// A child that is not the owner's is never written, whoever made it so.
	{"metadata.ownerReferences", "NameConflict: "},
	// With another uid, the child is that of a deleted owner of the same name.
	{"metadata.ownerReferences", "WaitingForDeletion: "},
	// A create stores what has the same key twice, but no apply does. Admission refuses it.
	{" spec.podTemplate.", "duplicate entries for key"},
}

func (r report) explains(what, detail string) bool {
	return strings.Contains(what, r.field) && strings.Contains(detail, r.words)
}

// chosen are the cases to try: those that once failed, which the corpus names, and a
// sample of the others. MODELBOX_EDITS=all takes all of them, MODELBOX_EDITS=7 draws the
// sample by another seed, and MODELBOX_EDITS_ONLY takes those whose description has
// some words.
func chosen[T fmt.Stringer](cases []T, corpus string, sample int) []T {
	GinkgoHelper()
	if only := os.Getenv("MODELBOX_EDITS_ONLY"); only != "" {
		return slices.DeleteFunc(cases, func(c T) bool { return !strings.Contains(c.String(), only) })
	}
	which := os.Getenv("MODELBOX_EDITS")
	if which == "all" {
		return cases
	}
	seed := uint64(1)
	if which != "" {
		var err error
		seed, err = strconv.ParseUint(which, 10, 64)
		Expect(err).NotTo(HaveOccurred(), "MODELBOX_EDITS is all, or a seed")
	}
	AddReportEntry("seed of the sample", seed)
	known := inCorpus(corpus)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
	var found []T
	for _, c := range cases {
		switch {
		case known[c.String()]:
			delete(known, c.String())
		case sample > 0:
			sample--
		default:
			continue
		}
		found = append(found, c)
	}
	Expect(known).To(BeEmpty(), "%s names cases that there are not", corpus)
	return found
}

// inCorpus are the lines of a corpus.
func inCorpus(file string) map[string]bool {
	GinkgoHelper()
	data, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	lines := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines[line] = true
		}
	}
	return lines
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
			for c := range queue {
				r, err := try(s, c)
				count.add(c, r, err)
			}
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
