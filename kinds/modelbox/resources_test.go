// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"sync"
	"testing"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// Admissions run side by side and share the presets, which the race detector
// watches here.
func TestPresetsAreSharedSafely(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			box := &modelv1.ModelBox{Spec: modelv1.ModelBoxSpec{ResourceType: modelv1.ResourceTypeLarge}}
			if errs := resources(&box.Spec); len(errs) != 1 {
				t.Errorf("a preset without its resources: %v", errs)
			}
			if _, ok := Preset(modelv1.ResourceTypeLarge); !ok {
				t.Error("there is no preset large")
			}
		})
	}
	all.Wait()
}
