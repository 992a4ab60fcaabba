// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/sizes"
	"github.com/modelbox-operator/modelbox-operator/test/golden"
)

// Each size of sizes/sizes.yaml makes an object with only resourceType and model complete, without a warning. What
// runs is in testdata/SIZE.golden.yaml.
func TestShippedSizes(t *testing.T) {
	data, err := os.ReadFile("sizes/sizes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all, errs := sizes.Parse(data)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	for name := range all {
		if _, err := os.Stat(filepath.Join("testdata", string(name)+".golden.yaml")); err != nil {
			t.Error(err)
		}
	}
	golden.Run(t, func(box *modelv1.ModelBox) ([]kinds.Object, error) {
		kind := modelbox.KindWithSizes(all)
		kind.SetDefaults(box, nil)
		if errs := append(kind.Refuse(box, nil), kind.Validate(box)...); len(errs) > 0 {
			return nil, errs.ToAggregate()
		}
		for _, warning := range modelbox.Warn(box) {
			return nil, errors.New(warning)
		}
		return modelbox.Workload(box, models.Fetcher{Image: "fetch:1"}).Children()
	})
}
