// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// ReasonTargetNotFound means that the Deployment which an object acts on does not exist.
const ReasonTargetNotFound = "TargetNotFound"

// TargetNotFound returns the readiness of an object whose spec.deploymentName names no Deployment.
func TargetNotFound(name string) status.Readiness {
	return status.NewStalled(ReasonTargetNotFound, fmt.Sprintf(
		"there is no Deployment %q in this namespace: create it, or change spec.deploymentName", name))
}

// Target reads, from the cache, the Deployment that an object of its namespace acts on, nil if
// there is none.
func Target(ctx context.Context, cache client.Reader, namespace, name string) (*appsv1.Deployment, error) {
	target := &appsv1.Deployment{}
	err := cache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, target)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Deployment %q: %w", name, err)
	}
	return target, nil
}
