// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
)

// Warn returns a warning if the Deployment does not exist or another controller scales
// it. It reads from the API server, because an admission is rare and a cache of all
// autoscalers would take too much memory. If the reads fail or ctx expires, there is no
// warning; the controller reports the conflict in status.
func Warn(ctx context.Context, reader client.Reader, ud *extensionv1.UnitedDeployment) []string {
	target := &appsv1.Deployment{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: ud.Namespace, Name: ud.Spec.DeploymentName}, target)
	if apierrors.IsNotFound(err) {
		return []string{fmt.Sprintf("%s: there is no Deployment %q in this namespace", deploymentNamePath, ud.Spec.DeploymentName)}
	}
	scalers, rivals := &autoscalingv2.HorizontalPodAutoscalerList{}, &extensionv1.UnitedDeploymentList{}
	if err != nil || reader.List(ctx, scalers, client.InNamespace(ud.Namespace)) != nil ||
		reader.List(ctx, rivals, client.InNamespace(ud.Namespace)) != nil {
		return nil
	}
	if holder := Holder(ud, target, scalers.Items, rivals.Items); holder != "" {
		return []string{"the Deployment will not be scaled: " + holder}
	}
	return nil
}
