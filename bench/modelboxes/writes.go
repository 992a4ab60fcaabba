// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelboxes

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
)

// Writes are the three writes that a new ModelBox needs, with the bodies that the
// operator sends.
type Writes struct {
	Deployment *appsv1.Deployment
	Service    *corev1.Service
	// Status is a merge patch of the ModelBox.
	Status []byte
}

// WritesOf returns the writes for a defaulted ModelBox. The operator's own pure
// functions build them.
func WritesOf(box *modelv1.ModelBox) (Writes, error) {
	w := modelbox.Workload(box, models.Fetcher{})
	deployment, err := w.Deployment()
	if err != nil {
		return Writes{}, err
	}
	return Writes{Deployment: deployment, Service: w.Service(), Status: statusOf(box, w)}, nil
}

func statusOf(box *modelv1.ModelBox, w *workload.Workload) []byte {
	into := modelv1.WorkloadStatus{Selector: w.Selector().String(), Address: w.Address()}
	into.ObservedGeneration = box.Generation
	// Only the length of the hashes matters here.
	const hash = "0123456789abcdef0123456789abcdef"
	into.Children = []modelv1.ChildStatus{{Kind: "Deployment", Desired: hash, Stored: hash}, {Kind: "Service", Desired: hash, Stored: hash}}
	readiness := workload.Progress(&appsv1.Deployment{})
	readiness.SetConditions(&into.Conditions, box.Generation, metav1.Now())
	return mustJSON(map[string]any{"status": into})
}
