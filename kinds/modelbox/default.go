// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modelbox holds the defaults and the validation of ModelBoxes. Both are pure
// functions of the object. Admission runs them, and the controller runs them again in memory
// before it reconciles, so that an object which was stored without admission is handled in the
// same way.
package modelbox

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/around"
	"github.com/modelbox-operator/modelbox-operator/kinds/fieldownership"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/podtemplate"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/kinds/schedules"
	"github.com/modelbox-operator/modelbox-operator/kinds/windows"
)

// AppName is the value of the label app.kubernetes.io/name on all children.
const AppName = "modelbox"

// Kind returns the defaults and the rules of ModelBoxes, which both processes run.
func Kind() kinds.Kind[modelv1.ModelBox] {
	return kinds.Kind[modelv1.ModelBox]{
		GVK:       modelv1.SchemeGroupVersion.WithKind("ModelBox"),
		Default:   Default,
		Validate:  Validate,
		Immutable: Immutable,
		Warn: func(obj *modelv1.ModelBox) []string {
			return append(Warn(obj), schedules.Warn(schedulesPath, obj.Spec.Schedules, time.Now())...)
		},
		WarnUpdate: func(obj, old *modelv1.ModelBox) []string {
			return podtemplate.RestartWarning(obj.Spec.RestartOnChange, old.Spec.RestartOnChange)
		},
	}
}

// KindWithSizes is Kind for the process that has the sizes of the cluster, which the function returns.
func KindWithSizes(sizes func() Sizes) kinds.Kind[modelv1.ModelBox] {
	kind := Kind()
	kind.Admit = func(box, old *modelv1.ModelBox, ops *patch.Ops) field.ErrorList { return Admit(box, old, sizes(), ops) }
	return kind
}

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
	newDefaults(box, old, ops).all()
}

func newDefaults(box, old *modelv1.ModelBox, ops *patch.Ops) *defaults {
	d := &defaults{box: box, spec: &box.Spec, ops: ops, unseen: old == nil}
	if old != nil {
		d.stored, d.old, d.owners = old, &old.Spec, fieldownership.Of(&box.ObjectMeta)
	}
	return d
}

// DefaultStored sets the defaults of a stored object in memory, as its controller does. An
// object that admission has seen gets no default that is newer than the object, because that
// would restart its pods: admission adds it with the next change of the pod template.
func DefaultStored(box *modelv1.ModelBox) {
	d := &defaults{box: box, spec: &box.Spec, unseen: isUnseen(box)}
	if d.unseen && IsSize(box.Spec.ResourceType) {
		box.Spec.Resources = nil // Admission has not set the values of the size, so it must not be built.
	}
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

	// sizes are those of the cluster, if admits is true: only the mutating webhook has them.
	sizes  Sizes
	admits bool

	// unseen is true if admission has not seen the object before.
	unseen bool
	// was is the stored object with the defaults that its controller sets, and changes is whether the update changes a
	// field of the pod template, or one that they are derived from. If not, none of them is derived again.
	was     *modelv1.ModelBox
	changes bool
}

// all sets the defaults. On update, those that are derived are forgotten first, and what has become of the spec is
// recorded at the end, so that a value which is derived again is no change.
func (d *defaults) all() {
	if d.stored != nil {
		d.compare()
	}
	d.name(d.box.Name)
	d.fixed()
	before := d.recorded()
	d.forget()
	d.resourceType()
	d.size()
	d.ports()
	d.serviceType()
	d.resources()
	d.probes()
	record(d.ops, "", before, d.recorded())
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
	if d.stored != nil {
		replicas(d.box, d.stored).Keep(&d.spec.Replicas, d.ops)
	}
	schedules.Default(d.spec.Schedules, d.ops)
	windows.Default(&d.spec.Windows, d.ops)
	if modelv1.IsUnset(d.spec.RollingUpdate) {
		patch.Set(d.ops, "/spec/rollingUpdate", &d.spec.RollingUpdate, new(intstr.FromString("25%")))
	}
	if d.spec.DefaultProbes == "" {
		patch.Set(d.ops, "/spec/defaultProbes", &d.spec.DefaultProbes, modelv1.DefaultProbesEnabled)
	}
	if d.spec.Model != nil {
		d.model("/spec/model", d.spec.Model)
	}
	for i := range d.spec.Models {
		d.model("/spec/models/"+strconv.Itoa(i), &d.spec.Models[i].Model)
	}
}

func (d *defaults) model(path string, model *modelv1.Model) {
	if model.MountPath == "" {
		patch.Set(d.ops, path+"/mountPath", &model.MountPath, modelv1.DefaultModelMountPath)
	}
	if model.SizeLimit == nil {
		patch.Set(d.ops, path+"/sizeLimit", &model.SizeLimit, new(resource.MustParse(modelv1.DefaultModelSizeLimit)))
	}
}

func (d *defaults) ports() {
	var before []modelv1.Port
	if d.old != nil {
		before = d.old.Ports
	}
	owners := &d.owners
	if d.old != nil && !d.changes && ports.RemovesName(d.spec.Ports, before, owners) {
		before, owners = nil, &fieldownership.Ownership{} // The name stays.
	}
	ports.Default(d.spec.Ports, before, owners, nil)
}

// serviceType has a default without ports as well, although there is no Service then, so
// that the field is never empty.
func (d *defaults) serviceType() {
	d.spec.ServiceType = cmp.Or(d.spec.ServiceType, modelv1.DefaultServiceType(d.spec.Ports))
}

// addsNewer reports whether a default that is newer than 0.1.0 is added: to a new object, to one
// that has the field, as it is stored or as its controller sees it, and to one whose pod template
// changes.
func (d *defaults) addsNewer(has func(*modelv1.ModelBoxSpec) bool) bool {
	return d.stored == nil || d.changes || has(&d.was.Spec)
}

func hasStartupProbe(spec *modelv1.ModelBoxSpec) bool { return spec.StartupProbe != nil }

func hasDeadline(spec *modelv1.ModelBoxSpec) bool { return spec.ProgressDeadlineSeconds != nil }

// compare compares the object that the client sent with the stored one, each with the defaults
// that its controller would set.
func (d *defaults) compare() {
	unseen := isUnseen(d.stored)
	d.was = completed(d.stored.Name, d.old, unseen)
	now := completed(d.box.Name, d.restored(), unseen)
	d.changes = d.spec.ResourceType != d.old.ResourceType || d.resizes() || now.Spec.DefaultProbes != d.was.Spec.DefaultProbes ||
		!samePods(&now.Spec, &d.was.Spec)
}

// completed returns an object with the defaults that DefaultStored sets.
func completed(name string, spec *modelv1.ModelBoxSpec, unseen bool) *modelv1.ModelBox {
	box := &modelv1.ModelBox{Spec: *spec.DeepCopy()}
	box.Name = name
	(&defaults{box: box, spec: &box.Spec, unseen: unseen}).all()
	return box
}

// samePods reports whether two specs have the same pod template.
func samePods(a, b *modelv1.ModelBoxSpec) bool {
	return equality.Semantic.DeepEqual(ofPods(a), ofPods(b)) &&
		equality.Semantic.DeepEqual(containerPorts(a), containerPorts(b)) &&
		sameTemplates(a.PodTemplate, b.PodTemplate, a.Name)
}

// containerPorts returns the ports of the main container that are made of the object's ports: those of an
// adopted object are in podTemplate.
func containerPorts(spec *modelv1.ModelBoxSpec) []corev1.ContainerPort {
	if len(spec.Selector) > 0 {
		return nil
	}
	return modelv1.ContainerPorts(spec.Ports)
}

// ofPods returns the part of a spec that is in the pod template as it is. A field is a part of
// it unless it is removed here.
func ofPods(spec *modelv1.ModelBoxSpec) *modelv1.ModelBoxSpec {
	out := *spec
	out.Replicas, out.Schedules, out.RollingUpdate, out.Strategy, out.ProgressDeadlineSeconds = nil, nil, nil, nil, nil
	out.ResourceType, out.DefaultProbes = "", "" // Other fields are derived from them.
	out.ServiceType, out.Paused = "", false
	out.Around = modelv1.Around{PodMetadata: around.Or(spec.PodMetadata)} // An empty one adds nothing.
	out.Ports, out.PodTemplate = nil, nil                                 // Compared by samePods.
	return &out
}

// sameTemplates reports whether two pod templates have the same content. One that cannot be
// decoded differs from any other.
func sameTemplates(a, b *runtime.RawExtension, main string) bool {
	if bytes.Equal(ptr.Deref(a, runtime.RawExtension{}).Raw, ptr.Deref(b, runtime.RawExtension{}).Raw) {
		return true
	}
	first, errs := podtemplate.Decode(a)
	second, more := podtemplate.Decode(b)
	return len(errs)+len(more) == 0 && equality.Semantic.DeepEqual(content(first, main), content(second, main))
}

// content returns a pod template without a main container that has only its name.
func content(template *corev1.PodTemplateSpec, main string) *corev1.PodTemplateSpec {
	template = cmp.Or(template, &corev1.PodTemplateSpec{})
	template.Spec.Containers = slices.DeleteFunc(template.Spec.Containers, func(c corev1.Container) bool {
		return equality.Semantic.DeepEqual(c, corev1.Container{Name: main})
	})
	return template
}
