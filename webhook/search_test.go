// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && !race

package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/modelbox-operator/modelbox-operator/test/hostile"
)

var (
	searchTime = flag.Duration("search", 0, "how long TestSearch searches")
	searchSeed = flag.Uint64("search-seed", 1, "the seed of TestSearch")
)

// found is what a body costs.
type found struct {
	name string
	cost
	shape *hostile.Shape
}

// describe describes a cost by one of its parts.
func (f *found) describe(part int) string {
	return fmt.Sprintf("the most of the bound of %s: %.2f, %v of CPU, %d KiB allocated, an answer of %d bytes, for a body of %d KiB: %s",
		[...]string{"CPU time", "allocated bytes", "the answer"}[part], f.parts()[part], f.cpu.Round(time.Millisecond), f.allocated>>10, len(f.text), f.body>>10, f.name)
}

// TestSearch searches for the bodies that cost the most, by each bound: it begins with the corpus, and
// objects that have all fields of their kind, changes one of the worst so far, and keeps what costs more. A body
// above a bound that does not depend on the machine is a failure; add its shape to testdata/costly.json.
func TestSearch(t *testing.T) {
	if *searchTime == 0 {
		t.Skip("a part of make fuzz")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // Its CPU time is that of the bodies before.
	s := searcher{mux: webhooks(t), Search: hostile.NewSearch(*searchSeed)}
	for _, shape := range shapes(t) {
		s.try(shape)
	}
	for deadline := time.Now().Add(*searchTime); time.Now().Before(deadline); s.bodies++ {
		if of := s.IntN(3 + 1); of < 3 && len(s.worst[of]) > 0 {
			s.try(s.Mutate(s.worst[of][s.IntN(len(s.worst[of]))].shape))
		} else {
			s.try(s.Mutate(hostile.Full(s.IntN(len(hostile.Kinds)))))
		}
	}
	t.Logf("%d bodies", s.bodies)
	for i, worst := range s.worst {
		shape, err := json.Marshal(worst[0].shape)
		t.Logf("%s: %s %v", worst[0].describe(i), shape, err)
		if problem := worst[0].problem(); problem != "" {
			t.Error(problem)
		}
	}
}

type searcher struct {
	*hostile.Search
	mux    http.Handler
	worst  [3][]found // By each part of the cost, the worst first.
	bodies int
}

// try measures a shape. A CPU time is measured twice, because other work of the machine adds to it.
func (s *searcher) try(shape *hostile.Shape) {
	const most = 12
	text := shape.Text()
	if len(text) > maxBody {
		return
	}
	runtime.GC()
	for _, path := range hostile.Kinds[shape.Kind].Paths() {
		got := found{path, measure(s.mux, path, text), shape}
		for i := range s.worst {
			costs := func(a, b found) int { return cmp.Compare(b.parts()[i], a.parts()[i]) }
			if len(s.worst[i]) == most && costs(s.worst[i][most-1], got) <= 0 {
				continue
			}
			if i == 0 {
				got.cpu = min(got.cpu, measure(s.mux, path, text).cpu)
			}
			s.worst[i] = append(s.worst[i], got)
			slices.SortStableFunc(s.worst[i], costs)
			s.worst[i] = s.worst[i][:min(len(s.worst[i]), most)]
		}
	}
}
