// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
)

// Default sets nothing, because both fields of a UnitedDeployment are required.
func Default(_, _ *extensionv1.UnitedDeployment, _ *patch.Ops) {}
