// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/modelbox-operator/modelbox-operator/test/faults"
)

// The faults of watches, and of the processes around them.
const (
	// silent delays the events of watches while the workload is edited.
	silent = "silent"
	// cut ends the watches while the workload is edited.
	cut = "cut"
	// rewound restarts the watches with a list from before the edit.
	rewound = "rewound"
	// restarted starts another process whose first lists are from before the edit.
	restarted = "restarted"
	// twoLeaders runs two leaders at the same time, one of them with silent watches.
	twoLeaders = "two-leaders"
)

var streamFaults = []string{silent, cut, rewound, restarted, twoLeaders}

var (
	ownerResources = []string{"modelboxes", "apps", "genericdaemons", "uniteddeployments", "erus"}
	childResources = []string{"deployments", "services", "daemonsets"}
)

// faultPlan is a workload and the faults that happen to it. Its string is a line of
// testdata/faults.txt: "modelbox-changed 409@1 500@3 silent:deployments,services".
type faultPlan struct {
	workload string
	// requests are faults of writes, by their number from the edit on.
	requests map[int]faults.RequestFault
	// stream is the fault of watches, "" for none, and resources are their resources.
	stream    string
	resources string
}

func (p faultPlan) String() string {
	words := []string{p.workload}
	for _, n := range slices.Sorted(maps.Keys(p.requests)) {
		words = append(words, fmt.Sprintf("%s@%d", p.requests[n], n))
	}
	if p.stream != "" {
		words = append(words, p.stream+":"+p.resources)
	}
	return strings.Join(words, " ")
}

func parsePlan(line string) (faultPlan, error) {
	words := strings.Fields(line)
	p := faultPlan{workload: words[0], requests: map[int]faults.RequestFault{}}
	for _, word := range words[1:] {
		if name, number, ok := strings.Cut(word, "@"); ok {
			n, err := strconv.Atoi(number)
			if err != nil || !slices.Contains(faults.RequestFaults, faults.RequestFault(name)) {
				return p, fmt.Errorf("%q is no fault of a request", word)
			}
			p.requests[n] = faults.RequestFault(name)
			continue
		}
		stream, resources, ok := strings.Cut(word, ":")
		if !ok || !slices.Contains(streamFaults, stream) {
			return p, fmt.Errorf("%q is no fault of watches", word)
		}
		p.stream, p.resources = stream, resources
	}
	return p, nil
}

// kills reports whether the process dies in the plan.
func (p faultPlan) kills() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(p.requests)), faults.RequestFault.Kills)
}

// batch is what plans that run at the same time, with one process, have in common: the faults
// of the process and of its watches.
type batch struct {
	stream, resources string
	kills             bool
}

func batches(plans []faultPlan) map[batch][]faultPlan {
	byBatch := map[batch][]faultPlan{}
	for _, p := range plans {
		b := batch{p.stream, p.resources, p.kills()}
		byBatch[b] = append(byBatch[b], p)
	}
	return byBatch
}

// drawn returns random plans with several faults. They have few different faults of watches,
// so that they run in few batches.
func drawn(seed uint64, count int, writes map[string]int) []faultPlan {
	random := rand.New(rand.NewPCG(seed, 0))
	resources := slices.Concat(ownerResources, childResources)
	var plans []faultPlan
	for len(plans) < count {
		stream := append(slices.Clone(streamFaults), "")[random.IntN(len(streamFaults)+1)]
		of := strings.Join(shuffled(random, resources)[:1+random.IntN(3)], ",")
		for range min(len(faultWorkloads), count-len(plans)) {
			w := faultWorkloads[random.IntN(len(faultWorkloads))]
			p := faultPlan{workload: w.name, requests: map[int]faults.RequestFault{}, stream: stream}
			if stream != "" {
				p.resources = of
			}
			for range random.IntN(3) {
				p.requests[1+random.IntN(writes[w.name]+1)] = faults.RequestFaults[random.IntN(len(faults.RequestFaults))]
			}
			plans = append(plans, p)
		}
	}
	return plans
}

func shuffled(random *rand.Rand, from []string) []string {
	all := slices.Clone(from)
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func TestPlansAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	writes := map[string]int{}
	for _, w := range faultWorkloads {
		writes[w.name] = 3
	}
	for _, p := range drawn(1, 200, writes) {
		read, err := parsePlan(p.String())
		if err != nil || read.String() != p.String() {
			t.Errorf("%q is read as %q, %v", p, read, err)
		}
	}
	for _, wrong := range []string{"modelbox-changed 410@1", "modelbox-changed 409@x", "modelbox-changed loud:erus", "modelbox-changed silent"} {
		if _, err := parsePlan(wrong); err == nil {
			t.Errorf("%q is read as a plan", wrong)
		}
	}
}
