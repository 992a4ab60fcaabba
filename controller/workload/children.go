// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/problems"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// Children are the desired and the observed children of one object, and the part of its status
// that is the same for all kinds with pods.
type Children struct {
	*Workload
	// Pods is the child that runs the pods, a Deployment or a DaemonSet.
	Pods *apply.Child
	// Service is nil for a kind that has none.
	Service *apply.Child
	// Observe returns the observed state of Pods, and copies its counters to the status of the owner.
	Observe func() Observed

	// Status is that of the owner.
	Status *modelv1.ChildrenStatus

	optional optionalChildren
	// configured is what Apply found out of the configuration.
	configured configured
	// later is after which time to call Apply again, 0 for never.
	later time.Duration
}

// Observed is the observed state of the child that runs the pods.
type Observed struct {
	// Kind is that of the child.
	Kind string
	// Progress is the readiness of the owner after its children have been applied.
	Progress status.Readiness
	// Availability is that of the owner while the child exists.
	Availability metav1.Condition
	// Workload is the child as the problems of its pods are read from it.
	Workload problems.Workload
}

// Desired returns the desired children of a workload, whose observed state goes to into. errs
// are the errors of its spec. If these leave open what the children have to be, it returns a
// status.Readiness, and children without a desired state. It is pure.
func Desired(w *Workload, into *modelv1.WorkloadStatus, errs field.ErrorList) (*Children, error) {
	children := &Children{
		Workload: w, Pods: &apply.Child{Live: &appsv1.Deployment{}}, Service: &apply.Child{Live: &corev1.Service{}}, Status: &into.ChildrenStatus,
	}
	children.Observe = func() Observed { return observe(w, children, into) }
	if err := Buildable(errs); err != nil {
		return children, err
	}
	deployment, err := w.Deployment()
	if err != nil {
		return children, err
	}
	children.Pods.Desired = deployment
	if len(w.MatchLabels) > 0 {
		children.Pods.Expect = append(children.Pods.Expect, apply.Selector(w.MatchLabels))
	}
	if service := w.Service(); service != nil {
		children.Service.Desired = service
	}
	children.optional.object = w.OptionalChildren()
	return children, nil
}

// all returns the children in the order in which they are written.
func (c *Children) all() []*apply.Child {
	if c.Service == nil {
		return []*apply.Child{c.Pods}
	}
	return append([]*apply.Child{c.Pods, c.Service}, c.optional.all()...)
}

// owner returns the owner with what its status says of the children.
func (c *Children) owner() *apply.Owner {
	ready := meta.FindStatusCondition(c.Status.Conditions, status.ConditionReady)
	return &apply.Owner{
		Object: c.Owner, Children: c.Status.Children, Paused: c.Paused,
		Ready: ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == c.Owner.GetGeneration(),
	}
}

// keepFetcher keeps what fetches a model in a Deployment that exists.
func (c *Children) keepFetcher() error {
	if desired, ok := c.Pods.Desired.(*appsv1.Deployment); ok && c.Pods.Exists() && len(c.Models) > 0 {
		return keepFetcher(c.Workload, desired)
	}
	return nil
}
