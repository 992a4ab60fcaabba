// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
)

// Deployment returns the desired Deployment.
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
	if rules.Unset(w.Rollout) {
		return appsv1.DeploymentStrategy{}
	}
	step := rules.IntOrPercent(*w.Rollout)
	return appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &step, MaxUnavailable: &step},
	}
}
