// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// Deployment is the Deployment that the workload asks for.
func (w *Workload) Deployment() (*appsv1.Deployment, error) {
	template, err := w.Template()
	if err != nil {
		return nil, err
	}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: w.ObjectMeta(),
		Spec: appsv1.DeploymentSpec{
			Replicas:        w.Replicas,
			Selector:        &metav1.LabelSelector{MatchLabels: w.Selector()},
			Template:        template,
			Strategy:        w.strategy(),
			MinReadySeconds: w.MinReadySeconds,
		},
	}, nil
}

func (w *Workload) strategy() appsv1.DeploymentStrategy {
	if modelv1.IsUnset(w.Rollout) {
		return appsv1.DeploymentStrategy{}
	}
	step := modelv1.IntOrPercent(*w.Rollout)
	return appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &step, MaxUnavailable: &step},
	}
}
