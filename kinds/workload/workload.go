// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload makes the desired children of an object with pods: the Deployment or the
// DaemonSet, the Service, and with package children the optional ones. It makes the effective pod
// template as well, which is that of the object's own fields with spec.podTemplate merged over it:
// admission validates it, and the children are built from it, so what is validated is what is
// built. All of it is pure.
package workload

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Workload is the part of a spec that the desired objects are built from, in the form that
// the kinds share. Each object has the name that kinds.ChildName returns.
type Workload struct {
	Owner kinds.Object
	// OwnerKind is the kind of the owner, which objects from a cache do not contain.
	OwnerKind schema.GroupVersionKind
	// Pods is what the spec defines of the pods.
	*Pods

	Replicas *int32
	// Strategy has precedence over Rollout, which is both maxSurge and maxUnavailable. If both
	// are nil, the strategy is left to the API server.
	Strategy                *appsv1.DeploymentStrategy
	Rollout                 *intstr.IntOrString
	MinReadySeconds         int32 // The default of the kind.
	ProgressDeadlineSeconds *int32

	ServiceType corev1.ServiceType

	// Optional is what the optional children are made of; the builder adds metadata, kind and
	// selector. It is nil for a DaemonSet, which has none.
	Optional *children.Object
	// OnNodes is that the pods are those of a DaemonSet, with Rollout as maxUnavailable, and not of
	// a Deployment.
	OnNodes bool

	// Fetched is what status records of the container that fetches a model, nil if that is nothing.
	Fetched *modelv1.FetcherStatus
	// Paused prevents every write for the owner.
	Paused bool
	// Schedules are those of the spec.
	Schedules []modelv1.Schedule
	// RestartOnChange is that of the spec.
	RestartOnChange modelv1.RestartOnChange
	// HoldChanges is that of the spec.
	HoldChanges modelv1.HoldChanges
	// Windows are those of the spec, in which the rollouts happen that HoldChanges names.
	Windows modelv1.Windows
}

// ObjectMeta returns the metadata of each desired object: name, labels and controller
// reference.
func (w *Workload) ObjectMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:            w.Owner.GetName(),
		Namespace:       w.Owner.GetNamespace(),
		Labels:          w.Labels(),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.Owner, w.OwnerKind)},
	}
}

// with returns the metadata of a desired object that has further labels and annotations, if there
// are any.
func (w *Workload) with(more *modelv1.Metadata) metav1.ObjectMeta {
	meta := w.ObjectMeta()
	if more != nil {
		meta.Labels, meta.Annotations = labels.Merge(more.Labels, meta.Labels), maps.Clone(more.Annotations)
	}
	return meta
}

// Children returns the desired Deployment, the desired Service if there are ports, and the optional
// children of the spec. It returns only a DaemonSet for an object whose pods run on nodes.
func (w *Workload) Children() ([]kinds.Object, error) {
	if w.OnNodes {
		set, err := w.DaemonSet()
		return []kinds.Object{set}, err
	}
	deployment, err := w.Deployment()
	if err != nil {
		return nil, err
	}
	out := []kinds.Object{deployment}
	if service := w.Service(); service != nil {
		out = append(out, service)
	}
	return append(out, children.Of(w.OptionalChildren())...), nil
}

// Template returns the desired pod template, which is the one that admission validates. Its error
// is an *InvalidError: admission would have refused the spec.
func (w *Workload) Template() (corev1.PodTemplateSpec, error) {
	template, errs := w.Effective()
	return template, Buildable(errs)
}

// Address returns the address of the first port within the cluster, "" without ports.
func (w *Workload) Address() string {
	if len(w.Ports) == 0 {
		return ""
	}
	return fmt.Sprintf("%s.%s.svc:%d", w.serviceName(), w.Owner.GetNamespace(), w.Ports[0].Port)
}

// InvalidError has the errors of a spec that leave open what its children have to be.
type InvalidError struct{ Errs field.ErrorList }

func (e *InvalidError) Error() string { return rules.FormatErrors(e.Errs) }

// Buildable returns an *InvalidError with the errors of a spec that leave open
// what its children have to be, nil if there are none. With any other error the children
// are built and the API server decides: a rule that is newer than a stored object must not
// stop the scaling and the repair of what runs.
func Buildable(errs field.ErrorList) error {
	if blocking := rules.Unbuildable(errs); len(blocking) > 0 {
		return &InvalidError{blocking}
	}
	return nil
}

// OptionalChildren returns what the optional children are made of. Their children have all labels,
// also where those of an adopted object have none.
func (w *Workload) OptionalChildren() *children.Object {
	o := *w.Optional
	o.Owner, o.Selector, o.Meta = w.OwnerKind, w.Selector(), w.ObjectMeta()
	o.Meta.Labels = labels.Set{api.LabelName: w.AppName, api.LabelInstance: w.Instance, api.LabelManagedBy: api.ManagedBy}
	return &o
}
