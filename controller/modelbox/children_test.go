// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"testing"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
	"github.com/modelbox-operator/modelbox-operator/test/golden"
)

// Each testdata/NAME.yaml is a ModelBox as a user writes it; NAME.golden.yaml has
// the desired objects. "go test ./controller/... -update" rewrites the latter.
func TestDesiredObjects(t *testing.T) {
	golden.Run(t, func(box *modelv1.ModelBox) ([]any, error) {
		box.UID = "6a1e2c55-0000-4000-8000-000000000000"
		modelbox.Default(box, nil, nil)
		if errs := modelbox.Validate(box); len(errs) > 0 {
			return nil, errs.ToAggregate()
		}
		w := workloadOf(box, modelsource.Fetcher{Image: "modelbox-controller:test"})
		deployment, err := w.Deployment()
		if err != nil {
			return nil, err
		}
		if service := w.Service(); service != nil {
			return []any{deployment, service}, nil
		}
		return []any{deployment}, nil
	})
}
