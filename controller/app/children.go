// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/kinds/app"
)

// Children returns the desired Deployment and Service of an App that has its defaults and no
// errors. It is pure.
func Children(obj *appv1.App) ([]client.Object, error) { return workloadOf(obj).Children() }

// workloadOf returns the workload of an App that has its defaults.
func workloadOf(obj *appv1.App) *workload.Workload {
	spec := &obj.Spec
	return &workload.Workload{
		Owner:     obj,
		OwnerKind: kind,
		Pods:      app.Pods(obj),

		Replicas:                spec.Replicas,
		ProgressDeadlineSeconds: spec.ProgressDeadlineSeconds,
		ServiceType:             modelv1.DefaultServiceType(spec.Ports),
		Paused:                  spec.Paused,
	}
}
