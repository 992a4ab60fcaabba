// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"math"

	"k8s.io/apimachinery/pkg/util/validation/field"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/kinds/schedules"
)

var (
	spec          = field.NewPath("spec")
	replicasPath  = spec.Child("replicas")
	schedulesPath = spec.Child("schedules")
)

// Validate returns the errors of a UnitedDeployment, in the order of the fields. It does
// not change the object.
func Validate(ud *extensionv1.UnitedDeployment) field.ErrorList {
	errs := rules.ObjectName(&ud.ObjectMeta)
	errs = append(errs, rules.ObjectOf("Deployment", spec.Child("deploymentName"), ud.Spec.DeploymentName)...)
	errs = append(errs, schedules.Validate(schedulesPath, ud.Spec.Schedules)...)
	if ud.Spec.Replicas == nil {
		return append(errs, field.Required(replicasPath, "must be the number of replicas of the Deployment"))
	}
	return append(errs, rules.Between(replicasPath, ud.Spec.Replicas, 0, math.MaxInt32)...)
}
