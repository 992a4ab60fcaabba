// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"k8s.io/apimachinery/pkg/util/intstr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/webhook/patch"
	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
)

// Default fills in what box leaves open and records it in ops, which may be nil. old
// is the stored object on update, nil on create. What was typed is left alone:
// podTemplate is not looked at, and of the rest only what is missing is written.
//
// A default that was derived from other fields follows them. If it is in old as old
// derives it, is in box as it is in old, and nobody typed it (see rules.Owners), it
// is derived again from box, which can mean that it goes. So an object becomes what
// its manifest makes of a new one, whatever it was before. An object without
// managedFields, which only exists in memory, is judged by equality alone.
//
// Default(Default(x)) is Default(x).
func Default(box, old *modelv1.ModelBox, ops *patch.Ops) {
	d := &defaults{spec: &box.Spec, owners: rules.OwnersOf(&box.ObjectMeta), ops: ops}
	if old != nil {
		d.old = &old.Spec
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
	owners    rules.Owners
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
	if d.spec.RollingUpdate == nil {
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
	rules.DefaultPorts(d.spec.Ports, before, &d.owners, d.ops)
}

// serviceType is filled in without ports as well, where no Service is made: it says
// what the first port would get, and a reader never finds it empty.
func (d *defaults) serviceType() {
	now := rules.ServiceType(d.spec.Ports)
	if d.spec.ServiceType == "" || d.spec.ServiceType != now && d.staleServiceType() {
		patch.Set(d.ops, "/spec/serviceType", &d.spec.ServiceType, now)
	}
}

func (d *defaults) staleServiceType() bool {
	return d.old != nil && d.spec.ServiceType == d.old.ServiceType &&
		d.old.ServiceType == rules.ServiceType(d.old.Ports) && !d.owners.Typed("spec", "serviceType")
}
