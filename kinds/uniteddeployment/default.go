// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package uniteddeployment holds the validation of UnitedDeployments, and the defaults of their
// schedules.
package uniteddeployment

import (
	"time"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/schedules"
)

// Kind returns the defaults and the rules of UnitedDeployments, which both processes run. The only
// warnings are the next scheduled times: whether the Deployment exists, and what else scales it, is
// in the status a moment later, and the webhook process does not read the API.
func Kind() kinds.Kind[extensionv1.UnitedDeployment] {
	return kinds.Kind[extensionv1.UnitedDeployment]{
		GVK:      extensionv1.SchemeGroupVersion.WithKind("UnitedDeployment"),
		Default:  Default,
		Codec:    func(_, _ *extensionv1.UnitedDeployment) kinds.Codec[extensionv1.UnitedDeployment] { return others },
		Validate: Validate,
		Warn: func(ud, _ *extensionv1.UnitedDeployment, now time.Time) []string {
			return schedules.Warn(schedulesPath, ud.Spec.Schedules, now)
		},
	}
}

// Default sets the defaults of the schedules; the other fields of a UnitedDeployment are required.
func Default(ud *extensionv1.UnitedDeployment) { schedules.Default(ud.Spec.Schedules) }

// others sets what has no defaults.
func others(to, from *extensionv1.UnitedDeployment) {
	to.TypeMeta, to.ObjectMeta, to.Status = from.TypeMeta, from.ObjectMeta, from.Status
}
