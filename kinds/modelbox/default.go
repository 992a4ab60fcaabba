// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/fieldownership"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
)

// Default sets the defaults of box and records them in ops, which may be nil. old is the
// stored object on update, nil on create. podTemplate has no defaults.
//
// A default that is derived from other fields follows them: on update, a value that no
// client set (see fieldownership.Ownership) and that can have been derived is derived
// again from box, or removed. So the spec is that of a new object with the fields that
// clients set, whatever the object was before. Without managedFields, a value is taken
// for a derived one if box and old have the same value and old derives it.
//
// There is one exception, so that pods restart only for a change of their own fields: an
// update that changes no field of the pod template neither derives one again nor adds a
// default that is newer than the stored object.
//
// Default is idempotent.
func Default(box, old *modelv1.ModelBox, ops *patch.Ops) {
	d := &defaults{box: box, spec: &box.Spec, ops: ops, unseen: old == nil}
	if old != nil {
		d.stored, d.old = old, &old.Spec
		d.owners, d.sentType = fieldownership.Of(&box.ObjectMeta), box.Spec.ResourceType
	}
	d.all()
}

// DefaultStored sets the defaults of a stored object in memory, as its controller does. An
// object that admission has seen gets no default that is newer than the object, because that
// would restart its pods: admission adds it with the next change of the pod template.
func DefaultStored(box *modelv1.ModelBox) {
	d := &defaults{box: box, spec: &box.Spec, unseen: isUnseen(box)}
	d.all()
}

// isUnseen reports whether an object was stored without admission, which sets defaultProbes
// in every object. (Up to 0.1.0, the schema did so as well.)
func isUnseen(box *modelv1.ModelBox) bool { return box.Spec.DefaultProbes == "" }

type defaults struct {
	box, stored *modelv1.ModelBox
	spec, old   *modelv1.ModelBoxSpec    // The specs of box and stored.
	owners      fieldownership.Ownership // Empty on create, because the client sets all fields of a new object.
	ops         *patch.Ops
	sentType    modelv1.ResourceType // resourceType as the client sent it.

	// unseen is true if admission has not seen the object before.
	unseen bool
	// was is the stored object with its defaults, once it is needed, and changes is whether
	// the update changes its pods.
	was     *modelv1.ModelBox
	changes bool
}

func (d *defaults) all() {
	d.name(d.box.Name)
	d.fixed()
	d.ports()
	d.serviceType()
	d.resourceType()
	d.resources()
	d.newer(d.probes())
}

// name defaults to the name of the object. An object with generateName has no name during
// admission (the API server generates it later, in Store.create of
// k8s.io/apiserver/pkg/registry/generic/registry), so the field remains empty until the
// next change of the spec, and its readers must default it until then.
func (d *defaults) name(object string) {
	if d.spec.Name == "" && object != "" {
		patch.Set(d.ops, "/spec/name", &d.spec.Name, object)
	}
}

// fixed sets the defaults that do not depend on other fields. The schema sets them as
// well, but not in objects that were stored before the schema had them. It does not set
// defaultProbes, which shows that admission has seen the object.
func (d *defaults) fixed() {
	if d.spec.Replicas == nil {
		patch.Set(d.ops, "/spec/replicas", &d.spec.Replicas, new(int32(1)))
	}
	if modelv1.IsUnset(d.spec.RollingUpdate) {
		patch.Set(d.ops, "/spec/rollingUpdate", &d.spec.RollingUpdate, new(intstr.FromString("25%")))
	}
	if d.spec.DefaultProbes == "" {
		patch.Set(d.ops, "/spec/defaultProbes", &d.spec.DefaultProbes, modelv1.DefaultProbesEnabled)
	}
	if d.spec.Model != nil {
		d.model(d.spec.Model)
	}
}

func (d *defaults) model(model *modelv1.Model) {
	if model.MountPath == "" {
		patch.Set(d.ops, "/spec/model/mountPath", &model.MountPath, modelv1.DefaultModelMountPath)
	}
	if model.SizeLimit == nil {
		patch.Set(d.ops, "/spec/model/sizeLimit", &model.SizeLimit, new(resource.MustParse(modelv1.DefaultModelSizeLimit)))
	}
}

func (d *defaults) ports() {
	var before []modelv1.Port
	if d.old != nil {
		before = d.old.Ports
	}
	owners := &d.owners
	if ports.RemovesName(d.spec.Ports, before, owners) && !d.changesPods() {
		before, owners = nil, &fieldownership.Ownership{} // The name stays.
	}
	ports.Default(d.spec.Ports, before, owners, d.ops)
}

// serviceType has a default without ports as well, although there is no Service then, so
// that the field is never empty.
func (d *defaults) serviceType() {
	now := modelv1.DefaultServiceType(d.spec.Ports)
	if d.spec.ServiceType == "" || d.spec.ServiceType != now && d.isDerivedServiceType() {
		patch.Set(d.ops, "/spec/serviceType", &d.spec.ServiceType, now)
	}
}

func (d *defaults) isDerivedServiceType() bool {
	switch {
	case d.old == nil, d.spec.ServiceType != corev1.ServiceTypeClusterIP && d.spec.ServiceType != corev1.ServiceTypeNodePort:
		return false
	case d.owners.HasManagedFields():
		return !d.owners.IsSet("/spec/serviceType", equals(d.spec.ServiceType))
	}
	return d.spec.ServiceType == d.old.ServiceType && d.old.ServiceType == modelv1.DefaultServiceType(d.old.Ports)
}

// equals returns a function that reports whether a text of a manifest is value.
func equals[T ~string](value T) func(string) bool {
	return func(text string) bool { return text == string(value) }
}
