// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Device returns the name of an extended resource that a container requires, the first one in
// alphabetical order, or "device" if it has claims only. It returns "" if it requires none.
func Device(r *corev1.ResourceRequirements) string {
	if r == nil {
		return ""
	}
	device := ""
	for name, limit := range r.Limits {
		if isExtended(name) && limit.Sign() > 0 && (device == "" || string(name) < device) {
			device = string(name)
		}
	}
	if device == "" && len(r.Claims) > 0 {
		return "device"
	}
	return device
}

// isExtended reports whether a resource is an extended resource, which has a domain other
// than kubernetes.io.
func isExtended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}
