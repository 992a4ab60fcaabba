// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// Deployment returns the desired Deployment.
func (w *Workload) Deployment() (*appsv1.Deployment, error) {
	template, err := w.Template()
	if err != nil {
		return nil, err
	}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: w.with(w.Optional.DeploymentMetadata),
		Spec: appsv1.DeploymentSpec{
			Replicas:                w.Replicas,
			Selector:                &metav1.LabelSelector{MatchLabels: w.Selector()},
			Template:                template,
			Strategy:                w.strategy(),
			MinReadySeconds:         ptr.Deref(w.Optional.MinReadySeconds, w.MinReadySeconds),
			RevisionHistoryLimit:    w.Optional.RevisionHistoryLimit,
			ProgressDeadlineSeconds: w.ProgressDeadlineSeconds,
		},
	}, nil
}

// strategy returns the strategy of the Deployment, which is empty if neither Strategy nor
// Rollout is set.
func (w *Workload) strategy() appsv1.DeploymentStrategy {
	switch {
	case w.Strategy == nil && modelv1.IsUnset(w.Rollout):
		return appsv1.DeploymentStrategy{}
	case w.Strategy == nil:
		both := step(w.Rollout)
		return rollingUpdate(both, both)
	case w.Strategy.Type == appsv1.RecreateDeploymentStrategyType:
		return appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	}
	steps := cmp.Or(w.Strategy.RollingUpdate, &appsv1.RollingUpdateDeployment{})
	return rollingUpdate(step(steps.MaxSurge), step(steps.MaxUnavailable))
}

// rollingUpdate returns a strategy with both steps. A step that is left to the API server
// would belong to no field manager: it would stay in the Deployment when the type becomes
// Recreate, and the API server would refuse the two together.
func rollingUpdate(maxSurge, maxUnavailable *intstr.IntOrString) appsv1.DeploymentStrategy {
	return appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: maxSurge, MaxUnavailable: maxUnavailable},
	}
}

// step returns a step, which is Kubernetes' default of 25% if it is not set.
func step(v *intstr.IntOrString) *intstr.IntOrString {
	if modelv1.IsUnset(v) {
		return new(intstr.FromString("25%"))
	}
	return new(modelv1.IntOrPercent(*v))
}
