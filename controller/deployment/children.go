// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
)

// Children are the Deployment and the Service of one workload.
type Children struct {
	workload            *workload.Workload
	deployment, service apply.Child
	// rewritten names the values that admission rewrote.
	rewritten string
}

// Desired returns the desired children of a workload. errs are the errors of its spec. If
// these leave open what the children have to be, it returns a *status.InvalidSpecError, and
// children without a desired state. It is pure.
func Desired(w *workload.Workload, errs field.ErrorList) (*Children, error) {
	children := &Children{
		workload:   w,
		deployment: apply.Child{Live: &appsv1.Deployment{}},
		service:    apply.Child{Live: &corev1.Service{}},
	}
	if err := workload.Buildable(errs); err != nil {
		return children, err
	}
	deployment, err := w.Deployment()
	if err != nil {
		return children, err
	}
	children.deployment.Desired = deployment
	if service := w.Service(); service != nil {
		children.service.Desired = service
	}
	return children, nil
}
