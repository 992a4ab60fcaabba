// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
)

// mainContainer returns the errors of what is added to the main container. Its reserved
// fields get one error each, and are not validated.
func (owner *Owner) mainContainer(path *field.Path, c *corev1.Container) field.ErrorList {
	rest := *c
	var errs field.ErrorList
	for _, reserved := range owner.Main.Reserved {
		if take(&rest, reserved.Field) {
			errs = append(errs, field.Forbidden(path.Child(reserved.Field), "may not be set on the main container; use "+reserved.Instead))
		}
	}
	return append(rules.MarkUnbuildable(errs...), containerKeys(path, &rest)...)
}

// take clears a field of a container and reports whether it was set.
func take(c *corev1.Container, name string) bool {
	before := *c
	switch name {
	case "image":
		c.Image = ""
		return before.Image != ""
	case "resources":
		c.Resources = corev1.ResourceRequirements{}
		return len(before.Resources.Limits)+len(before.Resources.Requests)+len(before.Resources.Claims) > 0
	case "ports":
		c.Ports = nil
		return len(before.Ports) > 0
	case "env":
		c.Env = nil
		return len(before.Env) > 0
	case "envFrom":
		c.EnvFrom = nil
		return len(before.EnvFrom) > 0
	}
	return takeProbe(c, name)
}

func takeProbe(c *corev1.Container, name string) bool {
	before := *c
	switch name {
	case "readinessProbe":
		c.ReadinessProbe = nil
		return before.ReadinessProbe != nil
	case "livenessProbe":
		c.LivenessProbe = nil
		return before.LivenessProbe != nil
	case "startupProbe":
		c.StartupProbe = nil
		return before.StartupProbe != nil
	}
	return false
}
