// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
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

// State is what one reconcile of an object with pods knows: each step adds what it finds out, for
// those after it.
type State struct {
	*Workload
	// Errs are the errors of the spec.
	Errs field.ErrorList
	// Status is the part of the status of the owner that is the same for all kinds with pods, and
	// WorkloadStatus that of those with a Deployment; nil for the others.
	Status         *modelv1.ChildrenStatus
	WorkloadStatus *modelv1.WorkloadStatus
	// Writer is that of the owner.
	Writer *status.Writer

	// Rollout is the spec as what is rolled out.
	Rollout Rollout

	// Pods is the child that runs the pods, a Deployment or a DaemonSet.
	Pods *apply.Child
	// Service is nil for a kind that has none.
	Service *apply.Child
	// Applied is whether all children have their desired state, as far as the API server has
	// accepted it.
	Applied bool
	// Observed is the observed state of Pods.
	Observed Observed

	optional optionalChildren
	// configured is what Apply found out of the configuration.
	configured configured
	held       held
	// scaled is whether the replicas of the owner were written, so that the reconcile ends.
	scaled bool
	// failed is why the children, or the replicas of a scheduled time, could not be written; see
	// apply.ReadinessOf.
	failed error
	// refused is what status says of that, nil if it says nothing.
	refused *status.Readiness
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

// NewState returns the state at the begin of a reconcile of an object with a Deployment. errs are
// the errors of its spec.
func NewState(w *Workload, errs field.ErrorList, into *modelv1.WorkloadStatus, writer *status.Writer) *State {
	return &State{
		Workload: w, Errs: errs, Status: &into.ChildrenStatus, WorkloadStatus: into, Writer: writer,
		Pods: &apply.Child{Live: &appsv1.Deployment{}}, Service: &apply.Child{Live: &corev1.Service{}},
	}
}

// NewDaemonState returns the state at the begin of a reconcile of an object with a DaemonSet.
func NewDaemonState(w *Workload, errs field.ErrorList, into *modelv1.ChildrenStatus, writer *status.Writer) *State {
	return &State{Workload: w, Errs: errs, Status: into, Writer: writer, Pods: &apply.Child{Live: &appsv1.DaemonSet{}}}
}

// all returns the children in the order in which they are written.
func (s *State) all() []*apply.Child {
	if s.Service == nil {
		return []*apply.Child{s.Pods}
	}
	return append([]*apply.Child{s.Pods, s.Service}, s.optional.all()...)
}

// owner returns the owner with what its status says of the children.
func (s *State) owner() *apply.Owner {
	ready := meta.FindStatusCondition(s.Status.Conditions, status.ConditionReady)
	return &apply.Owner{
		Object: s.Owner, Children: s.Status.Children, Paused: s.Paused, Limit: s.Writer.Owner,
		Ready: ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == s.Owner.GetGeneration(),
	}
}
