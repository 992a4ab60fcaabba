// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// podFields are the fields of a pod that have a field of their own in the object.
var podFields = []Reserved{
	{Field: "imagePullSecrets", Instead: "spec.imagePullSecrets", Either: true},
	{Field: "terminationGracePeriodSeconds", Instead: "spec.terminationGracePeriodSeconds", Either: true},
	{Field: "nodeSelector", Instead: "spec.scheduling.nodeSelector", Either: true},
	{Field: "tolerations", Instead: "spec.scheduling.tolerations", Either: true},
	{Field: "runtimeClassName", Instead: "spec.scheduling.runtimeClassName", Either: true},
	{Field: "priorityClassName", Instead: "spec.scheduling.priorityClassName", Either: true},
	{Field: "schedulerName", Instead: "spec.scheduling.schedulerName", Either: true},
}

// The bounds of spec.scheduling that Kubernetes' own validation does not have. They are those of the schema.
const (
	maxScheduling    = 64  // items of nodeSelector, of tolerations, and of podLabels
	maxSchedulerName = 253 // characters
)

// reserved returns the errors of what the template may not set because the object's own fields
// define it, those of fields aside (see takeUnmergeable), and of images that
// Kubernetes accepts and no container runtime does.
func (p *Pods) reserved(over *corev1.PodTemplateSpec, model *models.Pod) field.ErrorList {
	own := p.volumes(model)
	errs := p.labels(labelsPath, over.Labels)
	errs = append(errs, rules.MarkUnbuildable(volumesOfOwn(&over.Spec, own)...)...)
	for at, c := range containers(&over.Spec) {
		switch {
		case c.Name == p.name():
			errs = append(errs, rules.MarkUnbuildable(mountsOverOwn(at.Child("volumeMounts"), c, own)...)...)
		case model != nil && model.Fetch != nil && c.Name == model.Fetch.Name:
			errs = append(errs, rules.MarkUnbuildable(ownInitContainer(at, c)...)...)
		case c.Image != "":
			errs = append(errs, rules.Image(at.Child("image"), c.Image)...)
		}
	}
	return errs
}

// volumesOfOwn refuses volumes with the name of one that the object's own fields define.
func volumesOfOwn(pod *corev1.PodSpec, own []rules.OwnVolume) field.ErrorList {
	var errs field.ErrorList
	for i := range pod.Volumes {
		name := pod.Volumes[i].Name
		if j := slices.IndexFunc(own, func(o rules.OwnVolume) bool { return o.Volume.Name == name }); j >= 0 {
			errs = append(errs, field.Forbidden(root.Child("spec", "volumes").Index(i).Child("name"),
				name+" is the volume of "+own[j].Field+"; use another name, or remove "+own[j].Field))
		}
	}
	return errs
}

// inBoth returns the error of a field of the pod template that is set in the object's own
// field as well.
func inBoth(path *field.Path, own string) *field.Error {
	return field.Forbidden(path, "may be set in one place only: remove it here, or remove "+own)
}

// mountsOverOwn refuses mounts of the main container at the path of a volume that the object's
// own fields define. Kubernetes refuses only those with the same text.
func mountsOverOwn(list *field.Path, c *corev1.Container, own []rules.OwnVolume) field.ErrorList {
	var errs field.ErrorList
	for _, o := range own {
		for i := range c.VolumeMounts {
			if path.Clean(c.VolumeMounts[i].MountPath) == path.Clean(o.Mount.MountPath) {
				errs = append(errs, field.Forbidden(list.Index(i).Child("mountPath"),
					o.Field+" is mounted at "+o.Mount.MountPath+"; remove this mount, or remove "+o.Field))
			}
		}
	}
	return errs
}

// ownInitContainer returns the errors of what is added to an init container that the object's
// own fields define: it may have more environment variables and mounts, and other resources and
// another security context, and nothing else.
func ownInitContainer(at *field.Path, c *corev1.Container) field.ErrorList {
	rest := *c
	rest.Name, rest.Env, rest.VolumeMounts, rest.SecurityContext = "", nil, nil, nil
	rest.Resources.Limits, rest.Resources.Requests = nil, nil
	if equality.Semantic.DeepEqual(rest, corev1.Container{}) {
		return nil
	}
	return field.ErrorList{field.Forbidden(at, c.Name+" is the init container of spec.model, of which only env, "+
		"volumeMounts, securityContext, resources.limits and resources.requests may be set; remove the other fields, or use another name")}
}

// takeUnmergeable removes from the tree of a pod template what may not be merged over the generated
// one, and returns its errors: fields of the main container that have a field of their own in the
// object, and items of merged lists without their key, or with that of an earlier one. Empty values
// of such fields are removed without an error: they mean "not set", and some would replace.
func (p *Pods) takeUnmergeable(tree, generated map[string]any) field.ErrorList {
	pod, _ := tree["spec"].(map[string]any)
	ownPod := generated["spec"].(map[string]any)
	own := items(ownPod["containers"])[0]
	at := root.Child("spec")
	errs := p.takeReserved(at, pod, ownPod, podFields)
	for i, c := range items(pod["containers"]) {
		if c["name"] == p.name() {
			errs = append(errs, p.takeReserved(at.Child("containers").Index(i), c, own, p.Reserved)...)
			errs = append(errs, takeUnkeyed(at.Child("containers").Index(i), c, "volumeMounts", "mountPath")...)
		}
	}
	for i, c := range items(pod["initContainers"]) {
		if c["name"] == models.Container && len(p.Models) > 0 {
			errs = append(errs, takeUnkeyed(at.Child("initContainers").Index(i), c, "volumeMounts", "mountPath")...)
		}
	}
	for _, list := range [...]string{"containers", "initContainers", "volumes"} {
		errs = append(errs, takeUnkeyed(at, pod, list, "name")...)
	}
	return rules.MarkUnbuildable(errs...)
}

// takeReserved removes the fields of a list from an object of the pod template. own is the generated one.
func (p *Pods) takeReserved(at *field.Path, c, own map[string]any, list []Reserved) field.ErrorList {
	var errs field.ErrorList
	for _, reserved := range list {
		value, ok := c[reserved.Field]
		switch {
		case !ok || p.adopted() && reserved.Field == portsField:
			continue
		case reserved.Either && isEmpty(own[reserved.Field]):
			continue // The value of the template is the only one.
		case isEmpty(value):
		case !reserved.Either:
			errs = append(errs, field.Forbidden(at.Child(reserved.Field), "may not be set on the main container; use "+reserved.Instead))
		default:
			errs = append(errs, inBoth(at.Child(reserved.Field), reserved.Instead))
		}
		delete(c, reserved.Field)
	}
	return errs
}

// takeUnkeyed removes the items of a list without a key, or with that of an earlier one.
func takeUnkeyed(at *field.Path, of map[string]any, list, key string) field.ErrorList {
	var errs field.ErrorList
	var seen []any
	all, _ := of[list].([]any)
	kept := make([]any, 0, len(all))
	for i, item := range all {
		object, _ := item.(map[string]any)
		value, path := object[key], at.Child(list).Index(i).Child(key)
		switch {
		case isEmpty(value):
			errs = append(errs, field.Required(path, ""))
		case slices.Contains(seen, value):
			errs = append(errs, field.Duplicate(path, value))
		default:
			seen, kept = append(seen, value), append(kept, item)
		}
	}
	if len(errs) > 0 {
		of[list] = kept
	}
	return errs
}

// items returns the objects of a list, nil for any other value.
func items(list any) []map[string]any {
	values, _ := list.([]any)
	objects := make([]map[string]any, len(values))
	for i := range values {
		objects[i], _ = values[i].(map[string]any)
	}
	return objects
}

// isEmpty reports whether a value of a pod template says nothing.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case map[string]any:
		for _, member := range value {
			if !isEmpty(member) {
				return false
			}
		}
		return true
	}
	return false
}

// scheduling returns spec.scheduling, an empty one if there is none.
func (p *Pods) scheduling() *modelv1.Scheduling {
	return cmp.Or(p.Scheduling, &modelv1.Scheduling{})
}

// metadata returns spec.podMetadata, an empty one if there is none.
func (p *Pods) metadata() *modelv1.Metadata { return cmp.Or(p.Metadata, &modelv1.Metadata{}) }

// schedule sets the fields of a pod that spec.scheduling has.
func (p *Pods) schedule(pod *corev1.PodSpec) {
	s := p.scheduling()
	pod.NodeSelector, pod.Tolerations = s.NodeSelector, s.Tolerations
	pod.PriorityClassName, pod.SchedulerName = s.PriorityClassName, s.SchedulerName
	if s.RuntimeClassName != "" {
		pod.RuntimeClassName = &s.RuntimeClassName
	}
}

// schedulerName refuses a name that is too long: Kubernetes validates none.
func schedulerName(s *modelv1.Scheduling) field.ErrorList {
	if utf8.RuneCountInString(s.SchedulerName) <= maxSchedulerName {
		return nil
	}
	return field.ErrorList{field.TooLongCharacters(schedulingPath.Child("schedulerName"), s.SchedulerName, maxSchedulerName)}
}

// objectMeta returns the labels and annotations that the object's own fields define.
func (p *Pods) objectMeta() metav1.ObjectMeta {
	own := labels.Merge(p.scheduling().PodLabels, p.metadata().Labels)
	return metav1.ObjectMeta{Labels: labels.Merge(own, p.Labels()), Annotations: maps.Clone(p.metadata().Annotations)}
}

// ownMetadata refuses labels of spec.scheduling that the operator sets or selects the pods by, and labels and
// annotations that are in two of spec.scheduling, spec.podMetadata and the template.
func (p *Pods) ownMetadata(template *corev1.PodTemplateSpec) field.ErrorList {
	own, ours := p.metadata(), p.OwnLabels()
	var errs field.ErrorList
	others := labels.Set{}
	for _, key := range slices.Sorted(maps.Keys(p.scheduling().PodLabels)) {
		if ours.Has(key) {
			errs = append(errs, field.Forbidden(podLabelsPath.Key(key), "may not be set, because selectors use this label; remove it"))
		} else {
			others[key] = ""
		}
	}
	errs = append(errs, twice(labelsPath, template.Labels, podLabelsPath, others)...)
	errs = append(errs, twice(labelsPath, template.Labels, ownLabelsPath, own.Labels)...)
	errs = append(errs, twice(podLabelsPath, p.scheduling().PodLabels, ownLabelsPath, own.Labels)...)
	errs = append(errs, twice(annotationsPath, template.Annotations, ownAnnotationsPath, own.Annotations)...)
	return rules.MarkUnbuildable(errs...)
}

func twice(path *field.Path, written map[string]string, ownPath *field.Path, own map[string]string) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(own)) {
		if _, ok := written[key]; ok {
			errs = append(errs, inBoth(path.Key(key), ownPath.Key(key).String()))
		}
	}
	return errs
}

// withoutOwnLabels removes the labels of spec.podMetadata from the effective template, because package children
// validates them: Kubernetes' errors of labels do not tell which label they are about. It keeps those that template
// has as well: the effective value is that of the template.
func (p *Pods) withoutOwnLabels(effective, template *corev1.PodTemplateSpec) {
	for key := range p.metadata().Labels {
		if _, ok := template.Labels[key]; !ok {
			delete(effective.Labels, key)
		}
	}
}

// has reports whether a text is a key or a value of labels or annotations.
func has(of map[string]string, text string) bool {
	for key, value := range of {
		if text == key || text == value {
			return true
		}
	}
	return false
}
