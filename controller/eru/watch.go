// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
)

// target indexes Erus by their Deployment.
func target(reader client.Reader) trigger.Target[*mtsrev1.Eru] {
	return trigger.Target[*mtsrev1.Eru]{
		Client: reader,
		List:   func() client.ObjectList { return &mtsrev1.EruList{} },
		Name:   (*mtsrev1.Eru).DeploymentNameOrDefault,
	}
}

// watch watches Erus and their Deployments. Every change of a Deployment enqueues its Erus,
// because that is how the end of a rollout is seen.
func (r *Reconciler) watch(mgr manager.Manager) *builder.Builder {
	return builder.ControllerManagedBy(mgr).
		Named("eru").
		For(&mtsrev1.Eru{}, trigger.Changed()).
		Watches(&appsv1.Deployment{}, r.target.EnqueueNamed(), trigger.Changed()).
		WithOptions(trigger.Options())
}
