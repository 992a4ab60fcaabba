// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
)

// Children returns the desired Deployment and Service of a ModelBox that has its defaults
// and no errors. fetcher is what the operator decides of the container that fetches a model. It
// is pure.
func Children(box *modelv1.ModelBox, fetcher modelsource.Fetcher) ([]client.Object, error) {
	return workloadOf(box, fetcher).Children()
}

// minReadySeconds is how long a pod must have been ready before a rollout counts it as
// available: long enough to notice a server that starts and then crashes.
const minReadySeconds = 3

// workloadOf returns the workload of a ModelBox that has its defaults.
func workloadOf(box *modelv1.ModelBox, fetcher modelsource.Fetcher) *workload.Workload {
	spec := &box.Spec
	return &workload.Workload{
		Owner:     box,
		OwnerKind: kind,
		Pods:      modelbox.Pods(box, fetcher),

		Replicas:                spec.Replicas,
		Strategy:                spec.Strategy,
		Rollout:                 spec.RollingUpdate,
		MinReadySeconds:         minReadySeconds,
		ProgressDeadlineSeconds: spec.ProgressDeadlineSeconds,
		ServiceType:             spec.ServiceType,
		Fetched:                 box.Status.Fetcher,
		Paused:                  spec.Paused,
	}
}
