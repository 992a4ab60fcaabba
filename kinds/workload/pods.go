// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
)

// Pods is what an object defines of its pods, by its own fields and by spec.podTemplate.
type Pods struct {
	// AppName and Instance are the pods' api.LabelName and api.LabelInstance.
	AppName, Instance string
	// MatchLabels is spec.selector, the selector of an adopted Deployment; nil if it was not
	// adopted.
	MatchLabels labels.Set
	// Container is the main container, whose ports are made of Ports (modelv1.ContainerPorts).
	// Its name is empty if it is not known yet.
	Container corev1.Container
	Ports     []modelv1.Port
	// Reserved are the fields of the main container that have a field of their own in the object.
	Reserved []Reserved
	// SharedMemory is the size of the main container's /dev/shm; nil leaves it to the runtime.
	SharedMemory *resource.Quantity
	// Models are the models. Fetcher is what the operator, and not the object, decides of the
	// container that fetches them.
	Models  []models.Model
	Fetcher models.Fetcher

	ImagePullSecrets              []corev1.LocalObjectReference
	TerminationGracePeriodSeconds *int64
	// Metadata is spec.podMetadata, which may be nil.
	Metadata *modelv1.Metadata
	// Scheduling is spec.scheduling, which may be nil.
	Scheduling *modelv1.Scheduling
	// NodeLabel restricts the pods to the nodes with this label, "key" or "key=value"; "" is no
	// restriction.
	NodeLabel string

	// Template is spec.podTemplate.
	Template *runtime.RawExtension
}

// Reserved is a field of the main container that has a field of its own in the object.
type Reserved struct {
	// Field is the name of the container's field in JSON.
	Field string
	// Instead is the path of the object's field, such as spec.image.
	Instead string
	// Either is true if the container's field may be set in the pod template as long as the
	// object's field is not.
	Either bool
}

// portsField is the only field that is not reserved in an adopted object, whose ports are those of
// the Service.
const portsField = "ports"

// ReservedOfAll are the fields that every kind has. Where a kind has no ports, spec.podTemplate
// may.
var ReservedOfAll = []Reserved{
	{Field: "image", Instead: "spec.image"},
	{Field: "imagePullPolicy", Instead: "spec.imagePullPolicy", Either: true},
	{Field: "command", Instead: "spec.command", Either: true},
	{Field: "args", Instead: "spec.args", Either: true},
	{Field: "resources", Instead: "spec.resources"},
	{Field: "env", Instead: "spec.envs"},
}

// adopted reports whether the selector is that of an adopted Deployment. Then the operator adds
// nothing to the pod template that was not there: any addition would replace the pods.
func (p *Pods) adopted() bool { return len(p.MatchLabels) > 0 }

// Selector returns the labels that select the pods. They are name and instance only,
// because the selector of a Deployment is immutable.
func (p *Pods) Selector() labels.Set {
	if p.adopted() {
		return p.MatchLabels
	}
	return labels.Set{api.LabelName: p.AppName, api.LabelInstance: p.Instance}
}

// Labels returns the labels of the pods, and of all children. Those that were adopted keep the
// labels that they have, by which others may select them.
func (p *Pods) Labels() labels.Set {
	if p.adopted() {
		return nil
	}
	return labels.Merge(p.Selector(), labels.Set{api.LabelManagedBy: api.ManagedBy})
}

// OwnLabels returns the labels that the operator sets, and those by which it selects the pods.
func (p *Pods) OwnLabels() labels.Set { return labels.Merge(p.Labels(), p.Selector()) }

// containerPorts returns the ports of the main container that are made of the object's ports.
func (p *Pods) containerPorts() []corev1.ContainerPort {
	if p.adopted() {
		return nil
	}
	return modelv1.ContainerPorts(p.Ports)
}
