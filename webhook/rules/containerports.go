// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import corev1 "k8s.io/api/core/v1"

type containerPortKey struct {
	number   int32
	protocol corev1.Protocol
}

// numberAndProtocol is what a port is known by in server-side apply, which refuses
// a repeated one.
func numberAndProtocol(p *corev1.ContainerPort) containerPortKey {
	if p.Protocol == "" {
		return containerPortKey{p.ContainerPort, corev1.ProtocolTCP}
	}
	return containerPortKey{p.ContainerPort, p.Protocol}
}

// isSidecar says whether an init container keeps running beside the others
// (KEP-753).
func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
