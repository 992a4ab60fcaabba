// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestFormatErrorsNamesTheFirstErrorsAndCountsTheOthers(t *testing.T) {
	var errs field.ErrorList
	for range 25 {
		errs = append(errs, field.Required(field.NewPath("spec", "image"), "write one"))
	}
	if got := FormatErrors(errs); strings.Count(got, "spec.image") != 20 || !strings.HasSuffix(got, "; and 5 more") {
		t.Errorf("25 errors are formatted as %q", got)
	}
	if got := FormatErrors(errs[:2]); got != "spec.image: Required value: write one; spec.image: Required value: write one" {
		t.Errorf("2 errors are formatted as %q", got)
	}
}
