// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

const (
	templatePrefix = "spec.podTemplate."
	podPrefix      = templatePrefix + "spec."
)

// paths maps the paths of the effective pod template to those of the object's fields.
type paths struct {
	pods *Pods
	// over is the object's pod template, an empty one if there is none.
	over, effective *corev1.PodTemplateSpec
	model           *models.Pod
	known           field.ErrorList
	generated       map[string]any // The pod that the object's own fields define.
}

// locate returns the errors of the effective template at the paths of the object's fields, in the
// order of the paths, without those of fields that have an error already. Kubernetes iterates over
// maps: sorted, the errors are the same for the same object.
func (p *paths) locate(errs field.ErrorList) field.ErrorList {
	if len(errs) == 0 {
		return nil
	}
	template := p.pods.generated(p.model)
	generated, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&template.Spec)
	if err != nil {
		return field.ErrorList{field.InternalError(root, err)}
	}
	p.generated = generated
	var out field.ErrorList
	for _, err := range errs {
		if own, ok := p.own(err); ok && !p.isKnown(own) {
			err.Field = own
			out = append(out, err)
		}
	}
	slices.SortStableFunc(out, func(a, b *field.Error) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Detail, b.Detail), cmp.Compare(text(a.BadValue), text(b.BadValue)))
	})
	return out
}

// text returns a value that is a string, and "" for any other.
func text(value any) string {
	s, _ := value.(string)
	return s
}

// own returns the path of the object's field, and false if other rules say what is wrong: those of
// the names of the object and of the main container.
func (p *paths) own(err *field.Error) (string, bool) {
	path := correctPath(err.Field)
	if strings.HasPrefix(path, labelsPath.String()) && err.BadValue == p.pods.Instance {
		return "", false
	}
	if rest, ok := rules.CutField(path, labelsPath.String()); ok && has(p.pods.scheduling().PodLabels, text(err.BadValue)) {
		return podLabelsPath.String() + rest, true
	}
	if strings.HasPrefix(path, annotationsPath.String()) && p.isOwnAnnotation(err) {
		return ownAnnotationsPath.String(), true
	}
	pod, effective := &p.over.Spec, &p.effective.Spec
	switch list, index, of := item(path); list {
	case podPrefix + "containers":
		return p.container(list, effective.Containers[index], pod.Containers, of)
	case podPrefix + "initContainers":
		return p.container(list, effective.InitContainers[index], pod.InitContainers, of)
	case podPrefix + "volumes":
		name := effective.Volumes[index].Name
		at := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == name })
		if at < 0 {
			return p.volume(name), true
		}
		return fmt.Sprintf("%s[%d]%s", list, at, of), true
	}
	return p.ownPod(path), true
}

// isOwnAnnotation reports whether an error of the annotations is one of the object's: those of
// spec.podTemplate alone are never too long.
func (p *paths) isOwnAnnotation(err *field.Error) bool {
	own := p.pods.metadata().Annotations
	return len(own) > 0 && (err.Type == field.ErrorTypeTooLong || has(own, text(err.BadValue)))
}

// ownPod returns the path of a field of the pod that the object can have as a field of its own.
func (p *paths) ownPod(path string) string {
	// The requirement of the object's label follows those of the template.
	if list, term, of := item(path); list == podPrefix+"affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms" {
		if list, i, _ := item(of); list == ".matchExpressions" && p.pods.NodeLabel != "" && i == len(p.effectiveTerm(term).MatchExpressions)-1 {
			return "spec.label"
		}
	}
	return cmp.Or(p.reserved(podFields, p.generated, strings.TrimPrefix(path, podPrefix)), path)
}

func (p *paths) effectiveTerm(i int) *corev1.NodeSelectorTerm {
	return &p.effective.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[i]
}

// container returns the path of a field of a container, which is in the object's template, or
// defined by its own fields.
func (p *paths) container(list string, c corev1.Container, written []corev1.Container, of string) (string, bool) {
	at := slices.IndexFunc(written, func(w corev1.Container) bool { return w.Name == c.Name })
	main := c.Name == p.pods.name() && list == podPrefix+"containers"
	if main && of == ".name" {
		return "", false
	}
	if main {
		if own := p.reserved(p.pods.Reserved, items(p.generated["containers"])[0], strings.TrimPrefix(of, ".")); own != "" {
			return own, true
		}
	}
	if mounts, index, rest := item(of); mounts == ".volumeMounts" {
		mount := &c.VolumeMounts[index]
		same := func(m corev1.VolumeMount) bool { return m.MountPath == mount.MountPath }
		if at < 0 || !slices.ContainsFunc(written[at].VolumeMounts, same) {
			return p.volume(mount.Name), true
		}
		of = fmt.Sprintf("%s[%d]%s", mounts, slices.IndexFunc(written[at].VolumeMounts, same), rest)
	}
	switch {
	case at >= 0:
		return fmt.Sprintf("%s[%d]%s", list, at, of), true
	case main:
		return list, true
	}
	return "spec.model", true // The init container that fetches the model.
}

// reserved returns the path in the object of one of the fields, "" if it is a field of the
// template. generated is what the object's own fields define.
func (p *paths) reserved(fields []Reserved, generated map[string]any, of string) string {
	for _, reserved := range fields {
		rest, ok := rules.CutField(of, reserved.Field)
		switch {
		case !ok || reserved.Either && generated[reserved.Field] == nil:
		case reserved.Field == portsField && p.pods.adopted():
		case reserved.Field == portsField:
			return p.port(reserved.Instead, rest)
		default:
			return reserved.Instead + rest
		}
	}
	return ""
}

// volume returns the path of the object's field that defines a volume, or its mount.
func (p *paths) volume(name string) string {
	for _, own := range p.pods.volumes(p.model) {
		if own.Volume.Name == name {
			return own.Field
		}
	}
	return "spec.model"
}

// port returns the path of the port from which a port of the main container was made.
// Not each port makes one: see modelv1.ContainerPorts.
func (p *paths) port(path, rest string) string {
	list, declared, of := item(rest)
	ports := p.pods.containerPorts()
	if list != "" || declared >= len(ports) {
		return path
	}
	made := &ports[declared]
	i := slices.IndexFunc(p.pods.Ports, func(port modelv1.Port) bool {
		return port.TargetPortOrDefault() == intstr.FromInt32(made.ContainerPort) && port.ProtocolOrDefault() == made.Protocol
	})
	if of == ".containerPort" {
		of = ".port"
		if p.pods.Ports[i].TargetPort != nil {
			of = ".targetPort"
		}
	}
	return fmt.Sprintf("%s[%d]%s", path, i, of)
}

// limitOfContainer is the path in Kubernetes' errors of a container's limit that exceeds
// the limit of the pod.
var limitOfContainer = regexp.MustCompile(`^spec\.podTemplate\.spec\.resources\.containers(\[\d+\])(\[.*\])\.limits$`)

// correctPath corrects the few paths in the API server's errors that are not paths of
// fields.
func correctPath(path string) string {
	for _, list := range [...]string{"labels", "annotations"} {
		if rest, ok := strings.CutPrefix(path, templatePrefix+list); ok {
			return templatePrefix + "metadata." + list + rest
		}
	}
	if strings.HasSuffix(path, ".limits") {
		return limitOfContainer.ReplaceAllString(path, podPrefix+"containers$1.resources.limits$2")
	}
	return path
}

// item splits the path of an item of a list, or of a field of it: the path of the list, the index,
// and the rest. For any other path, list is "none".
func item(path string) (list string, index int, rest string) {
	list, tail, ok := strings.Cut(path, "[")
	number, rest, closed := strings.Cut(tail, "]")
	index, err := strconv.Atoi(number)
	if !ok || !closed || err != nil {
		return "none", 0, ""
	}
	return list, index, rest
}

// isKnown reports whether there is an error of the field, of a field in it or of a field
// that contains it. An error of one label does not hide those of others: Kubernetes reports each
// at the path of all labels, and so for annotations.
func (p *paths) isKnown(path string) bool {
	keyed := path == labelsPath.String() || path == annotationsPath.String()
	for _, err := range p.known {
		if _, in := rules.CutField(err.Field, path); in && !keyed {
			return true
		}
		if _, around := rules.CutField(path, err.Field); around {
			return true
		}
	}
	return false
}
