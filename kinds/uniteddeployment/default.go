// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package uniteddeployment holds the validation of UnitedDeployments, and the rule of
// which controller may scale a Deployment.
package uniteddeployment

import (
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
)

// Kind returns the defaults and the rules of UnitedDeployments, which both processes run. There are no
// warnings: whether the Deployment exists, and what else scales it, is in the status a moment later,
// and the webhook process does not read the API.
func Kind() kinds.Kind[extensionv1.UnitedDeployment] {
	return kinds.Kind[extensionv1.UnitedDeployment]{
		GVK:      extensionv1.SchemeGroupVersion.WithKind("UnitedDeployment"),
		Default:  Default,
		Validate: Validate,
	}
}

// Default sets nothing, because both fields of a UnitedDeployment are required.
func Default(_, _ *extensionv1.UnitedDeployment, _ *patch.Ops) {}
