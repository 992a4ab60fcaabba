// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// chosen returns the cases to try: those that once failed, which the corpus names, and with
// MODELBOX_LONG=1 a sample of the others. MODELBOX_EDITS=all selects all of them, MODELBOX_EDITS=7
// the sample of a seed, and MODELBOX_EDITS_ONLY those whose description contains a text.
func chosen[T fmt.Stringer](cases []T, corpus string, sample int) []T {
	GinkgoHelper()
	if only := os.Getenv("MODELBOX_EDITS_ONLY"); only != "" {
		return slices.DeleteFunc(cases, func(c T) bool { return !strings.Contains(c.String(), only) })
	}
	which := os.Getenv("MODELBOX_EDITS")
	if which == "all" {
		return cases
	}
	seed := uint64(GinkgoRandomSeed())
	switch {
	case which == "" && os.Getenv("MODELBOX_LONG") == "":
		sample = 0
	case which != "":
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

// inCorpus returns the lines of a corpus.
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
