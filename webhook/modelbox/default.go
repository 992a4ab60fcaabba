// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/webhook/fieldownership"
	"github.com/modelbox-operator/modelbox-operator/webhook/patch"
	"github.com/modelbox-operator/modelbox-operator/webhook/ports"
)

// Default fills in what box leaves open and records it in ops, which may be nil. old
// is the stored object on update, nil on create. podTemplate is not looked at.
//
// A default that is derived from other fields follows them: on update, a value that
// no client set (see fieldownership.Ownership) and that can be a derived one is derived again from
// box, which can mean that it goes. So the spec is what a new object would get that has
// only the fields which clients set, whatever the object was before. An object without
// managedFields is judged by equality: a value is a derived one if box has it as old
// has it, and old derives it.
//
// Default(Default(x)) is Default(x).
func Default(box, old *modelv1.ModelBox, ops *patch.Ops) {
	d := &defaults{spec: &box.Spec, ops: ops}
	if old != nil {
		d.old, d.owners = &old.Spec, fieldownership.Of(&box.ObjectMeta)
	}
	d.name(box.Name)
	d.fixed()
	d.resourceType()
	d.resources()
	d.ports()
	d.serviceType()
	d.probes()
}

type defaults struct {
	spec, old *modelv1.ModelBoxSpec
	owners    fieldownership.Ownership // Only of an update: the client that creates an object sets all of its fields.
	ops       *patch.Ops
}

// name is the object's. An object that is created by generateName has none when
// admission sees it (the API server makes the name later, in Store.create of
// k8s.io/apiserver/pkg/registry/generic/registry), so the field stays empty until
// the next change of the spec, and whoever reads it must default it until then.
func (d *defaults) name(object string) {
	if d.spec.Name == "" && object != "" {
		patch.Set(d.ops, "/spec/name", &d.spec.Name, object)
	}
}

// fixed fills in the defaults that depend on nothing. The schema has them as well;
// an object that was read before the schema had them may lack them.
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
}

func (d *defaults) ports() {
	var before []modelv1.Port
	if d.old != nil {
		before = d.old.Ports
	}
	ports.Default(d.spec.Ports, before, &d.owners, d.ops)
}

// serviceType is filled in without ports as well, where no Service is made: it says
// what the first port would get, and a reader never finds it empty.
func (d *defaults) serviceType() {
	now := modelv1.DefaultServiceType(d.spec.Ports)
	if d.spec.ServiceType == "" || d.spec.ServiceType != now && d.derivedServiceType() {
		patch.Set(d.ops, "/spec/serviceType", &d.spec.ServiceType, now)
	}
}

func (d *defaults) derivedServiceType() bool {
	switch {
	case d.old == nil, d.spec.ServiceType != corev1.ServiceTypeClusterIP && d.spec.ServiceType != corev1.ServiceTypeNodePort:
		return false
	case d.owners.HasManagedFields():
		return !d.owners.IsSet("/spec/serviceType", is(d.spec.ServiceType))
	}
	return d.spec.ServiceType == d.old.ServiceType && d.old.ServiceType == modelv1.DefaultServiceType(d.old.Ports)
}

// is says whether a text of a manifest is a value.
func is[T ~string](value T) func(string) bool {
	return func(text string) bool { return text == string(value) }
}
