// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package patch_test

import (
	"testing"

	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
)

// TestMemory holds what a default costs: no memory of its own but what the type
// needs to marshal itself, once the list has grown. (The race detector makes pools
// forget at random, so it is not counted there.)
func TestMemory(t *testing.T) {
	var ops patch.Ops
	var s spec
	one, doc := new(int32(1)), []byte(`{"spec":{}}`)
	got := testing.AllocsPerRun(100, func() {
		ops.Reset()
		patch.Set(&ops, "/spec/replicas", &s.Replicas, one)
		patch.Set(&ops, "/spec/image", &s.Image, "a")
		patch.Set(&ops, "/spec/paused", &s.Paused, true)
		if ops.Fit(doc) != nil || len(ops.JSON()) == 0 {
			t.Fatal("no operations")
		}
	})
	if got > 0 {
		t.Errorf("%v allocations for three plain values, want none", got)
	}
}
