// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
)

// Children returns the desired Deployment and Service of a ModelBox that has its defaults
// and no errors. fetcher is what the operator decides of the container that fetches a model. It
// is pure.
func Children(box *modelv1.ModelBox, fetcher modelsource.Fetcher) ([]client.Object, error) {
	return workloadOf(box, fetcher).Children()
}
