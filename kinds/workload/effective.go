// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

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
