// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules_test

import "k8s.io/apimachinery/pkg/util/validation/field"

// f is the path of the validated field.
var f = field.NewPath("f")
