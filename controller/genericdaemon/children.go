// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericdaemon

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
)

// Children returns the desired DaemonSet of a Genericdaemon that has its defaults and no
// errors. It is pure.
func Children(daemon *mydomainv1beta1.Genericdaemon) ([]client.Object, error) {
	set, err := daemonSet(daemon)
	if err != nil {
		return nil, err
	}
	return []client.Object{set}, nil
}
