// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/app"
	"github.com/modelbox-operator/modelbox-operator/test/golden"
)

// Each testdata/NAME.yaml is an App as a user writes it; NAME.golden.yaml has the
// desired objects. "go test ./controller/... -update" rewrites the latter.
func TestDesiredObjects(t *testing.T) {
	golden.Run(t, func(obj *appv1.App) ([]client.Object, error) {
		obj.UID = "6a1e2c55-0000-4000-8000-000000000000"
		app.Default(obj, nil, nil)
		if errs := app.Validate(obj); len(errs) > 0 {
			return nil, errs.ToAggregate()
		}
		return Children(obj)
	})
}
