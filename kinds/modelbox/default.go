// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modelbox holds the defaults and the validation of ModelBoxes. Both are pure
// functions of the object. Admission runs them, and the controller runs them again in memory
// before it reconciles, so that an object which was stored without admission is handled in the
// same way.
package modelbox

import (
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

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/fieldownership"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/kinds/schedules"
	"github.com/modelbox-operator/modelbox-operator/kinds/windows"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// AppName is the value of the label app.kubernetes.io/name on all children.
const AppName = "modelbox"

// Kind returns the defaults and the rules of ModelBoxes, which both processes run.
func Kind() kinds.Kind[modelv1.ModelBox] {
	return kinds.Kind[modelv1.ModelBox]{
		GVK:       modelv1.SchemeGroupVersion.WithKind("ModelBox"),
		Default:   Default,
		Stored:    DefaultStored,
		Validate:  Validate,
		Immutable: Immutable,
		Warn: func(obj, old *modelv1.ModelBox, now time.Time) []string {
			restart := workload.RestartWarning(obj.Spec.RestartOnChange, cmp.Or(old, obj).Spec.RestartOnChange)
			return slices.Concat(restart, Warn(obj), warnReplicas(obj, old), schedules.Warn(schedulesPath, obj.Spec.Schedules, now))
		},
	}
}

// KindWithSizes is Kind for the process that has the sizes of the cluster, which the function
// returns.
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
	// was is the stored object with the defaults that its controller sets, and changes is whether
	// the update changes a field of the pod template, or one that they are derived from. If not,
	// none of them is derived again.
	was     *modelv1.ModelBox
	changes bool
}

// all sets the defaults. On update, those that are derived are forgotten first, and what has become
// of the spec is recorded at the end, so that a value which is derived again is no change.
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
		!samePods(now, d.was)
}

// completed returns an object with the defaults that DefaultStored sets.
func completed(name string, spec *modelv1.ModelBoxSpec, unseen bool) *modelv1.ModelBox {
	box := &modelv1.ModelBox{Spec: *spec.DeepCopy()}
	box.Name = name
	(&defaults{box: box, spec: &box.Spec, unseen: unseen}).all()
	return box
}

// samePods reports whether two objects have the same pods. Their pod templates are compared before
// they are merged, because that costs less.
func samePods(a, b *modelv1.ModelBox) bool {
	now, was := Pods(a, models.Fetcher{}), Pods(b, models.Fetcher{})
	if a.Spec.RestartOnChange != b.Spec.RestartOnChange || !sameTemplates(now.Template, was.Template, b.Spec.Name) {
		return false
	}
	now.Template, was.Template = nil, nil
	first, errs := now.Effective()
	second, more := was.Effective()
	return len(errs)+len(more) == 0 && equality.Semantic.DeepEqual(first, second)
}

// sameTemplates reports whether two pod templates have the same content. One that cannot be
// decoded differs from any other.
func sameTemplates(a, b *runtime.RawExtension, main string) bool {
	if equality.Semantic.DeepEqual(a, b) {
		return true
	}
	first, errs := workload.Decode(a)
	second, more := workload.Decode(b)
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

// probes sets the defaults of the probes, and of what is derived from them.
func (d *defaults) probes() {
	d.probe(&d.spec.ReadinessProbe)
	livenessIsDerived := d.probe(&d.spec.LivenessProbe)
	// These defaults are newer than 0.1.0. They are added to an object that it stored with the
	// first change of the pod template, and follow their source from then on.
	if d.unseen || d.stored != nil {
		d.startupProbe(livenessIsDerived)
		d.progressDeadline()
	}
}

// probe sets the default action of a probe without one, which keeps its timing, and reports whether
// it did.
func (d *defaults) probe(probe **corev1.Probe) (derived bool) {
	port, hasDefault := probePort(d.spec)
	if !hasDefault || *probe != nil && (*probe).ProbeHandler != (corev1.ProbeHandler{}) {
		return false
	}
	if *probe == nil {
		*probe = &corev1.Probe{}
	}
	(*probe).TCPSocket = tcpSocket(port)
	return true
}

// probePort returns the port of the default probes, and false if there are none.
func probePort(spec *modelv1.ModelBoxSpec) (intstr.IntOrString, bool) {
	if spec.DefaultProbes == modelv1.DefaultProbesDisabled {
		return intstr.IntOrString{}, false
	}
	return ports.DefaultProbePort(spec.Ports)
}

// tcpSocket returns the default action. It has only a port, so that the timing has the
// defaults of Kubernetes.
func tcpSocket(port intstr.IntOrString) *corev1.TCPSocketAction {
	return &corev1.TCPSocketAction{Port: port}
}

func hasOtherAction(probe *corev1.Probe) bool {
	return probe != nil && (probe.Exec != nil || probe.HTTPGet != nil || probe.GRPC != nil)
}

const (
	// progressSeconds is the default of progressDeadlineSeconds without a startup probe, which
	// is that of a Deployment.
	progressSeconds = 600
	// minProgressSeconds is more than minReadySeconds of the Deployment, as Kubernetes requires.
	minProgressSeconds = 4
)

// startupProbe sets the default of startupProbe, which is the action of livenessProbe, if that is a
// derived one. Otherwise a probe without an action gets the same one as the other probes, and keeps
// its timing.
func (d *defaults) startupProbe(livenessIsDerived bool) {
	port, _ := probePort(d.spec)
	switch is := d.spec.StartupProbe; {
	case is == nil && (!livenessIsDerived || !d.addsNewer(hasStartupProbe)):
	case livenessIsDerived && (is == nil || *is == corev1.Probe{}):
		d.spec.StartupProbe = defaultStartupProbe(port)
	default:
		d.probe(&d.spec.StartupProbe)
	}
}

func defaultStartupProbe(port intstr.IntOrString) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: tcpSocket(port)},
		PeriodSeconds: rules.StartupPeriodSeconds, FailureThreshold: rules.StartupFailureThreshold,
	}
}

func isDefaultStartupProbe(probe *corev1.Probe) bool {
	return probe != nil && probe.TCPSocket != nil && equality.Semantic.DeepEqual(probe, defaultStartupProbe(probe.TCPSocket.Port))
}

// progressDeadline sets the default of progressDeadlineSeconds: the time that a startup
// probe gives a container to start, with Kubernetes' defaults for what it does not set, and as
// much again as a rollout without one has.
func (d *defaults) progressDeadline() {
	if d.spec.ProgressDeadlineSeconds != nil || !d.addsNewer(hasDeadline) {
		return
	}
	seconds := int64(progressSeconds)
	if startup := d.spec.StartupProbe; startup != nil {
		seconds = min(progressSeconds+max(rules.ProbeSeconds(startup), 0), rules.MaxSeconds)
	}
	d.spec.ProgressDeadlineSeconds = new(int32(seconds))
}

// resourceType defaults to custom if resources are set, and to small otherwise.
func (d *defaults) resourceType() {
	switch {
	case d.spec.ResourceType != "":
	case d.spec.Resources != nil:
		d.spec.ResourceType = modelv1.ResourceTypeCustom
	default:
		d.spec.ResourceType = modelv1.ResourceTypeSmall
	}
}

func both(r *corev1.ResourceRequirements) [2]*corev1.ResourceList {
	return [2]*corev1.ResourceList{&r.Limits, &r.Requests}
}

// presets are the CPU and the memory of the resource types that have one. Requests equal limits, so
// that the pods have the quality of service class Guaranteed.
var presets = map[modelv1.ResourceType]corev1.ResourceList{
	modelv1.ResourceTypeSmall:  newPreset("1", "2Gi"),
	modelv1.ResourceTypeMedium: newPreset("2", "4Gi"),
	modelv1.ResourceTypeLarge:  newPreset("4", "8Gi"),
}

func newPreset(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// resources default to those of the preset, CPU and memory quantity by quantity: other
// resources, and claims, may be set beside them. If a client set another CPU or memory, only what
// clients set remains.
func (d *defaults) resources() {
	preset := presets[d.spec.ResourceType]
	if preset == nil || differs(d.spec.Resources, preset) {
		return
	}
	d.spec.Resources = cmp.Or(d.spec.Resources, &corev1.ResourceRequirements{})
	for _, list := range both(d.spec.Resources) {
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		for name, quantity := range preset {
			if _, set := (*list)[name]; !set {
				(*list)[name] = quantity
			}
		}
	}
}

// differs reports whether a CPU or a memory is set, and is not equal to that of a preset, in any
// notation. All other resources are the client's.
func differs(r *corev1.ResourceRequirements, preset corev1.ResourceList) bool {
	if r == nil {
		return false
	}
	for name, of := range preset {
		for _, list := range both(r) {
			if value, set := (*list)[name]; set && value.Cmp(of) != 0 {
				return true
			}
		}
	}
	return false
}

// inPresets reports whether a preset has the value of a resource.
func inPresets(name string, value any) bool {
	for _, preset := range presets {
		if of, ok := preset[corev1.ResourceName(name)]; ok && same(resourcesPointer, of.String(), value) {
			return true
		}
	}
	return false
}
