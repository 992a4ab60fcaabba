// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Pods is what an object defines of its pods, by its own fields and by spec.podTemplate.
type Pods struct {
	// AppName and Instance are the pods' api.LabelName and api.LabelInstance.
	AppName, Instance string
	// MatchLabels is spec.selector, the selector of an adopted Deployment; nil if it was not adopted.
	MatchLabels labels.Set
	// Container is the main container, whose ports are made of Ports (modelv1.ContainerPorts).
	// Its name is empty if it is not known yet.
	Container corev1.Container
	Ports     []modelv1.Port
	// Reserved are the fields of the main container that have a field of their own in the object.
	Reserved []Reserved
	// SharedMemory is the size of the main container's /dev/shm; nil leaves it to the runtime.
	SharedMemory *resource.Quantity
	// Models are the models. Fetcher is what the operator, and not the object, decides of the container that
	// fetches them.
	Models  []models.Model
	Fetcher models.Fetcher

	ImagePullSecrets              []corev1.LocalObjectReference
	TerminationGracePeriodSeconds *int64
	// Metadata is spec.podMetadata, which may be nil.
	Metadata *modelv1.Metadata
	// Scheduling is spec.scheduling, which may be nil.
	Scheduling *modelv1.Scheduling
	// NodeLabel restricts the pods to the nodes with this label, "key" or "key=value"; "" is no restriction.
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

// portsField is the only field that is not reserved in an adopted object, whose ports are those of the Service.
const portsField = "ports"

// ReservedOfAll are the fields that every kind has. Where a kind has no ports, spec.podTemplate may.
var ReservedOfAll = []Reserved{
	{Field: "image", Instead: "spec.image"},
	{Field: "imagePullPolicy", Instead: "spec.imagePullPolicy", Either: true},
	{Field: "command", Instead: "spec.command", Either: true},
	{Field: "args", Instead: "spec.args", Either: true},
	{Field: "resources", Instead: "spec.resources"},
	{Field: "env", Instead: "spec.envs"},
}

// adopted reports whether the selector is that of an adopted Deployment. Then the operator adds nothing to
// the pod template that was not there: any addition would replace the pods.
func (p *Pods) adopted() bool { return len(p.MatchLabels) > 0 }

// Selector returns the labels that select the pods. They are name and instance only,
// because the selector of a Deployment is immutable.
func (p *Pods) Selector() labels.Set {
	if p.adopted() {
		return p.MatchLabels
	}
	return labels.Set{api.LabelName: p.AppName, api.LabelInstance: p.Instance}
}

// Labels returns the labels of the pods, and of all children. Those that were adopted keep the labels
// that they have, by which others may select them.
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

// Effective returns the pod template of the children. With errors there is none: admission
// would have refused spec.podTemplate, or spec.model.
func (p *Pods) Effective() (corev1.PodTemplateSpec, field.ErrorList) {
	over, errs := decode(p.Template)
	if blocking := rules.Unbuildable(errs); len(blocking) > 0 {
		return corev1.PodTemplateSpec{}, blocking
	}
	model, err := p.model()
	if err != nil {
		return corev1.PodTemplateSpec{}, rules.MarkUnbuildable(err)
	}
	template, errs := p.merge(over, model)
	return template, rules.Unbuildable(errs)
}

// model returns what the models add to the pods, nil without a model. Its error is that of a URI.
func (p *Pods) model() (*models.Pod, *field.Error) {
	for i := range p.Models {
		if m := &p.Models[i]; m.Err != nil {
			return nil, field.Invalid(m.At.Child("uri"), m.URI, m.Err.Error())
		}
	}
	return models.PodOf(p.Models, p.Fetcher, p.Container.Resources), nil
}

// merge returns the generated template, with a decoded one applied as a strategic merge patch.
// It returns the errors of what may not be merged, and leaves that out. It changes over.tree.
func (p *Pods) merge(over *decoded, model *models.Pod) (corev1.PodTemplateSpec, field.ErrorList) {
	template, errs := p.generated(model), field.ErrorList(nil)
	if over != nil {
		original, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&template)
		if err != nil {
			return template, field.ErrorList{field.InternalError(root, err)}
		}
		errs = p.takeUnmergeable(over.tree, original)
		merged, err := apply(original, over.tree)
		if err != nil {
			return template, append(errs, rules.MarkUnbuildable(field.Invalid(root, field.OmitValueType{}, err.Error()))...)
		}
		template = merged
	}
	if model != nil {
		model.Settle(&template.Spec)
	}
	onNodes(&template.Spec, p.NodeLabel)
	ownFields(&template)
	return template, errs
}

// apply applies a strategic merge patch. It works on decoded JSON in which integers are
// integers: as a float64, 9007199254740993 would become 9007199254740992, and the largest int64
// a number that no int64 can hold.
func apply(original, patch map[string]any) (merged corev1.PodTemplateSpec, err error) {
	tree, err := strategicpatch.StrategicMergeMapPatch(original, patch, corev1.PodTemplateSpec{})
	if err != nil {
		return merged, fmt.Errorf("cannot be applied to the generated pod template: %w", err)
	}
	data, err := json.Marshal(tree)
	if err != nil {
		return merged, err
	}
	return merged, json.Unmarshal(data, &merged)
}

// generated returns the template that the object's own fields define.
func (p *Pods) generated(model *models.Pod) corev1.PodTemplateSpec {
	main := p.Container
	main.Name, main.Ports = p.name(), p.containerPorts()
	pod := corev1.PodSpec{
		ImagePullSecrets:              p.ImagePullSecrets,
		TerminationGracePeriodSeconds: p.TerminationGracePeriodSeconds,
	}
	p.schedule(&pod)
	for _, own := range p.volumes(model) {
		if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == own.Volume.Name }) {
			pod.Volumes = append(pod.Volumes, own.Volume)
		}
		main.VolumeMounts = append(main.VolumeMounts, own.Mount)
	}
	if model != nil && model.Fetch != nil {
		pod.InitContainers = []corev1.Container{*model.Fetch}
	}
	pod.Containers = []corev1.Container{main}
	return corev1.PodTemplateSpec{ObjectMeta: p.objectMeta(), Spec: pod}
}

// volumes returns the volumes that the object's own fields define.
func (p *Pods) volumes(model *models.Pod) []rules.OwnVolume {
	own := rules.SharedMemory(p.SharedMemory)
	if model != nil {
		own = append(own, model.Volumes...)
	}
	return own
}

// placeholder is the name of a main container that has no name yet, because the API
// server generates the object's name after admission.
const placeholder = "00000000000000000000000000000000000000000000000000000000000"

func (p *Pods) name() string { return cmp.Or(p.Container.Name, placeholder) }

// ownFields changes a merged template to the fields that the operator must own, and no others.
//
// The API server fills in serviceAccount, the deprecated alias of serviceAccountName, and
// copies it back where serviceAccountName is missing. So the operator owns both: otherwise a
// service account would stay in the child after podTemplate does not name it any more.
//
// The annotation kubectl.kubernetes.io/restartedAt belongs to the field manager that
// restarts. A podTemplate that was copied from a running object contains the time of an old
// restart, and an apply of it would start another rollout.
//
// An empty list of claims, which the API server refuses in the resources of a pod, is not sent.
func ownFields(template *corev1.PodTemplateSpec) {
	template.Spec.DeprecatedServiceAccount = template.Spec.ServiceAccountName
	if r := template.Spec.Resources; r != nil && len(r.Claims) == 0 {
		r.Claims = nil
	}
	delete(template.Annotations, api.AnnotationRestartedAt)
	if len(template.Annotations) == 0 {
		template.Annotations = nil
	}
}

// onNodes restricts the pods to the nodes that have a label. The terms of a node selector
// are alternatives, so each of those that podTemplate contains requires the label.
func onNodes(pod *corev1.PodSpec, label string) {
	if label == "" {
		return
	}
	pod.Affinity = cmp.Or(pod.Affinity, &corev1.Affinity{})
	pod.Affinity.NodeAffinity = cmp.Or(pod.Affinity.NodeAffinity, &corev1.NodeAffinity{})
	nodes := pod.Affinity.NodeAffinity
	if nodes.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		nodes.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
	}
	terms := nodes.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		terms[i].MatchExpressions = append(terms[i].MatchExpressions, requirement(label))
	}
}

// requirement returns the node selector requirement for spec.label: "key" matches any value,
// "key=value" only that value.
func requirement(label string) corev1.NodeSelectorRequirement {
	key, value, found := strings.Cut(label, "=")
	if !found {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpExists}
	}
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}
}
