// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
)

// Kind returns the defaults and the rules of Apps, which both processes run.
func Kind() kinds.Kind[appv1.App] {
	return kinds.Kind[appv1.App]{
		GVK:      appv1.SchemeGroupVersion.WithKind("App"),
		Default:  Default,
		Validate: Validate,
		Warn:     Warn,
	}
}
