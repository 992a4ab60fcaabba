// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import "sigs.k8s.io/controller-runtime/pkg/client"

// Children returns the desired Deployment and, if there are ports, the desired Service.
func (w *Workload) Children() ([]client.Object, error) {
	deployment, err := w.Deployment()
	if err != nil {
		return nil, err
	}
	if service := w.Service(); service != nil {
		return []client.Object{deployment, service}, nil
	}
	return []client.Object{deployment}, nil
}
