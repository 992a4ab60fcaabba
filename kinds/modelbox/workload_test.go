// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"testing"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/test/golden"
)

// Each testdata/NAME.yaml is a ModelBox as a user writes it; NAME.golden.yaml has the
// desired objects. "go test ./kinds/... -update" writes the latter again.
func TestDesiredObjects(t *testing.T) {
	golden.Run(t, func(obj *modelv1.ModelBox) ([]kinds.Object, error) {
		obj.UID = "6a1e2c55-0000-4000-8000-000000000000"
		Default(obj)
		if errs := Validate(obj); len(errs) > 0 {
			return nil, errs.ToAggregate()
		}
		return Workload(obj, models.Fetcher{Image: "modelbox-controller:test"}).Children()
	})
}
