// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
)

// Kind returns the defaults and the rules of ModelBoxes, which both processes run.
func Kind() kinds.Kind[modelv1.ModelBox] {
	return kinds.Kind[modelv1.ModelBox]{
		GVK:      modelv1.SchemeGroupVersion.WithKind("ModelBox"),
		Default:  Default,
		Validate: Validate,
		Warn:     Warn,
	}
}
