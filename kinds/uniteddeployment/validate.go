// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"math"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

var (
	spec               = field.NewPath("spec")
	deploymentNamePath = spec.Child("deploymentName")
	replicasPath       = spec.Child("replicas")
)

// Validate returns the errors of a UnitedDeployment, in the order of the fields. It does
// not change the object.
func Validate(ud *extensionv1.UnitedDeployment) field.ErrorList {
	errs := rules.ObjectName(&ud.ObjectMeta)
	errs = append(errs, target(ud.Spec.DeploymentName)...)
	if ud.Spec.Replicas == nil {
		return append(errs, field.Required(replicasPath, "must be the number of replicas of the Deployment"))
	}
	return append(errs, rules.Replicas(replicasPath, ud.Spec.Replicas, math.MaxInt32)...)
}

func target(name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(deploymentNamePath, "must be the name of a Deployment in the same namespace")}
	}
	if len(name) > validation.DNS1123SubdomainMaxLength || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return field.ErrorList{field.Invalid(deploymentNamePath, name, "must be a Deployment's name: a DNS-1123 subdomain of at most 253 "+
			"lower-case letters, digits, dashes and dots, starting and ending with a letter or digit")}
	}
	return nil
}
