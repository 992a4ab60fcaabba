// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
)

// values are a part of a spec: the deploymentName and its deprecated alias, each of which can
// be absent.
type values map[string]any

const (
	current = "deploymentName"
	alias   = "deploymentname"
)

// A history is one Eru and the clients that write it. Beside it, set is the same object on a
// server without admission: it has only the fields that clients set.
type history struct {
	*rand.Rand
	eru, set *server
	steps    []string
}

func newHistory(t testing.TB, seed uint64) *history {
	return &history{Rand: rand.New(rand.NewPCG(seed, 0)), eru: &server{t: t, admission: true}, set: &server{t: t}}
}

// clients are the ways in which the object is written, by name.
var clients = map[string]func(*history) []string{
	"kubectl apply":                 func(h *history) []string { return h.apply(h.manifest()) },
	"kubectl apply --server-side":   func(h *history) []string { return h.applyServerSide("person", h.manifest()) },
	"a second manager, server-side": func(h *history) []string { return h.applyServerSide("program", h.manifest()) },
	"kubectl replace":               func(h *history) []string { return h.write("kubectl-replace", h.manifest()) },
	"kubectl edit": func(h *history) []string {
		next := maps.Clone(h.eru.values())
		if name := h.one(current, alias); h.IntN(3) == 0 {
			delete(next, name)
		} else {
			next[name] = h.one("web", "api", "batch")
		}
		return h.write("kubectl-edit", next)
	},
	"kubectl patch --type=merge": func(h *history) []string {
		next := maps.Clone(h.eru.values())
		for name, value := range h.manifest() {
			if next[name] = value; value == "" {
				delete(next, name)
			}
		}
		return h.write("kubectl-patch", next)
	},
}

func (h *history) one(values ...string) string { return values[h.IntN(len(values))] }

// manifest is what stands in a file, sometimes with a field that says nothing.
func (h *history) manifest() values {
	out := values{}
	for _, name := range []string{current, alias} {
		if h.IntN(2) == 0 {
			out[name] = h.one("web", "web", "api", "api", "batch", "batch", "")
		}
	}
	return out
}

// apply is kubectl apply: what is in the manifest is set, also where it changes nothing.
func (h *history) apply(manifest values) []string {
	modified := object(manifest)
	text := string(marshal(h.eru.t, modified))
	modified["metadata"].(map[string]any)["annotations"] = map[string]any{corev1.LastAppliedConfigAnnotation: text}
	if h.eru.live == nil {
		return h.update("kubectl-client-side-apply", func() []string { return h.eru.update(modified, "kubectl-client-side-apply") }, manifest)
	}
	change, err := jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(h.eru.lastApplied()), marshal(h.eru.t, modified), marshal(h.eru.t, h.eru.live))
	must(err)
	data, err := jsonpatch.MergePatch(marshal(h.eru.t, h.eru.live), change)
	must(err)
	var next map[string]any
	must(json.Unmarshal(data, &next))
	return h.update("kubectl-client-side-apply", func() []string { return h.eru.update(next, "kubectl-client-side-apply") }, manifest)
}

func (h *history) applyServerSide(who string, manifest values) []string {
	errs := h.eru.apply(who, manifest)
	h.set.apply(who, manifest)
	return errs
}

// write is an update of the whole object.
func (h *history) write(who string, next values) []string {
	whole := clone(h.eru.live)
	spec := whole["spec"].(map[string]any)
	delete(spec, current)
	delete(spec, alias)
	maps.Copy(spec, next)
	return h.update(who, func() []string { return h.eru.update(whole, who) })
}

// update is a write whose client comes to own what differs from what is stored, and what it has
// also in its manifest.
func (h *history) update(who string, write func() []string, also ...values) []string {
	stored, set := h.eru.values(), h.set.values()
	errs := write()
	next := values{}
	for name, value := range h.eru.sentValues() {
		if _, owned := set[name]; owned || stored[name] != value {
			next[name] = value
		}
	}
	for _, manifest := range also {
		maps.Copy(next, manifest)
	}
	whole := object(next)
	if h.set.live != nil {
		whole["metadata"] = clone(h.set.live)["metadata"]
	}
	h.set.update(whole, who)
	return errs
}

// expected is a new object that has only what clients set, and what is refused of it. An
// apply removes what no other manager owns, though the manifest of the last client-side apply
// may have it.
func (h *history) expected() (*server, []string) {
	fresh := &server{t: h.eru.t, admission: true}
	sent, spec := h.eru.sentValues(), values{}
	for name, value := range h.set.values() {
		if _, ok := sent[name]; ok {
			spec[name] = value
		}
	}
	return fresh, fresh.update(object(spec), "client")
}

// step writes once and compares.
func (h *history) step(name string) error {
	before, set := h.eru.live, h.set.live
	errs := clients[name](h)
	h.steps = append(h.steps, fmt.Sprintf("%s sends %v", name, h.eru.sentValues()))
	if before != nil && cmp.Equal(before["spec"], h.eru.sent["spec"]) {
		return nil // The webhook is called for a changed spec.
	}
	fresh, want := h.expected()
	if diff := cmp.Diff(want, errs); diff != "" {
		return fmt.Errorf("errors (-of a new object +got):\n%s", diff)
	}
	if len(errs) > 0 {
		h.set.live = set
		return nil
	}
	if diff := cmp.Diff(fresh.values(), h.eru.values()); diff != "" {
		return fmt.Errorf("spec (-of a new object +got):\n%s", diff)
	}
	h.settle()
	return nil
}

// settle gives a field that a client set to nothing the value that was stored, which it has for
// every later client, and adds a field that another client removed and that has again, as a
// default, the value in the manifest of the last client-side apply: it cannot be told from one
// that the manifest sets.
func (h *history) settle() {
	set, stored := h.set.live["spec"].(map[string]any), h.eru.values()
	for name, value := range set {
		if value == "" && stored[name] != nil {
			set[name] = stored[name]
		}
	}
	var applied struct{ Spec values }
	if text := h.eru.lastApplied(); text != "" {
		must(json.Unmarshal([]byte(text), &applied))
	}
	for name, value := range applied.Spec {
		if set[name] == nil && stored[name] == value {
			set[name] = value
		}
	}
}

// Whatever the history, the names are those of a new object that has only the fields which
// clients set, and what is refused of it is refused.
func TestHistories(t *testing.T) {
	t.Parallel()
	names := slices.Sorted(maps.Keys(clients))
	steps, refused, derived := 0, 0, 0
	for seed := range uint64(80) {
		h := newHistory(t, seed)
		for len(h.steps) < 8 {
			name := h.one(names...)
			if h.eru.live == nil && !strings.HasPrefix(name, "kubectl apply") {
				continue
			}
			before := h.eru.values()
			if err := h.step(name); err != nil {
				t.Fatalf("seed %d: after\n%s\n%v", seed, strings.Join(h.steps, "\n"), err)
			}
			steps++
			switch after := h.eru.values(); {
			case h.eru.live == nil: // Nothing was stored.
				h.eru, h.set, h.steps = &server{t: t, admission: true}, &server{t: t}, nil
				refused++
			case before[current] != after[current] && before[alias] != after[alias]:
				derived++
			}
		}
	}
	t.Logf("%d steps, %d refused creations, %d changes of both names", steps, refused, derived)
	if refused == 0 || derived == 0 {
		t.Error("the histories have no refusal, or no name that follows the other")
	}
}
