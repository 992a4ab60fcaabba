// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// The paths are those of every kind that has a pod template.
var (
	spec               = field.NewPath("spec")
	root               = spec.Child("podTemplate")
	containersPath     = root.Child("spec", "containers")
	initContainersPath = root.Child("spec", "initContainers")
	imagePath          = spec.Child("image")
	portsPath          = spec.Child("ports")
	selectorPath       = spec.Child("selector")
	schedulingPath     = spec.Child("scheduling")
	podLabelsPath      = schedulingPath.Child("podLabels")
	ownLabelsPath      = spec.Child("podMetadata", "labels")
	ownAnnotationsPath = spec.Child("podMetadata", "annotations")
	labelsPath         = root.Child("metadata", "labels")
	annotationsPath    = root.Child("metadata", "annotations")
)

// The maximum lengths of the lists of an object's own fields, which are those of the schema.
const (
	maxVariables   = 1024 // of envs, command and args, each
	maxSources     = 64   // of envFrom
	maxPullSecrets = 16
	// MaxContainers is the maximum number of containers of a pod template, those that run before
	// the others included. To validate one takes more time than to validate any other item.
	MaxContainers = 128
)

// Validate returns the errors of the effective pod template, each at the path of the field of the
// object that has the value, after errs, which are the errors of the object's other fields.
// A field that has an error already gets no other one. The rules are the operator's own, on what
// is merged, on images, and on the keys that server-side apply requires to be unique, and then
// those of Kubernetes.
func (p *Pods) Validate(errs field.ErrorList) field.ErrorList {
	over, undecoded := decode(p.Template)
	errs = append(errs, undecoded...)
	if over == nil && len(undecoded) > 0 {
		return errs // What refers to the template cannot be validated.
	}
	template := cmp.Or(over.template(), &corev1.PodTemplateSpec{})
	long := p.tooMany(template)
	if errs = append(errs, long...); len(long) > 0 || over != nil && over.large {
		return errs // To validate any further could cost too much.
	}
	errs = append(errs, schedulerName(p.scheduling())...)
	errs = append(errs, p.ownMetadata(template)...)
	errs = append(errs, p.selector(template)...)
	errs = append(errs, ports.ValidateTargets(portsPath, p.Ports, p.containerPorts(), template)...)
	model, _ := p.model() // A URI that cannot be parsed has an error of its own.
	errs = append(errs, p.reserved(template, model)...)
	effective, unmerged := p.merge(over, model)
	if errs = append(errs, unmerged...); len(errs) >= rules.MaxErrors {
		return errs // A response has no room for more.
	}
	p.withoutOwnLabels(&effective, template)
	located := paths{pods: p, over: template, effective: &effective, model: model, known: errs}
	return append(errs, located.locate(slices.Concat(keys(&effective), names(&effective), kubernetes(&effective)))...)
}

// template returns the typed form of a decoded template, nil if there is none.
func (d *decoded) template() *corev1.PodTemplateSpec {
	if d == nil {
		return nil
	}
	return &d.PodTemplateSpec
}

// tooMany returns the errors of lists of the object's own fields that are too long, and of too many
// containers in the template.
func (p *Pods) tooMany(template *corev1.PodTemplateSpec) field.ErrorList {
	var errs field.ErrorList
	for _, list := range [...]struct {
		name    string
		n, most int
	}{
		{"imagePullSecrets", len(p.ImagePullSecrets), maxPullSecrets},
		{"command", len(p.Container.Command), maxVariables},
		{"args", len(p.Container.Args), maxVariables},
		{"envs", len(p.Container.Env), maxVariables},
		{"envFrom", len(p.Container.EnvFrom), maxSources},
		{"scheduling.nodeSelector", len(p.scheduling().NodeSelector), maxScheduling},
		{"scheduling.tolerations", len(p.scheduling().Tolerations), maxScheduling},
		{"scheduling.podLabels", len(p.scheduling().PodLabels), maxScheduling},
	} {
		if list.n > list.most {
			errs = append(errs, field.TooMany(spec.Child(list.name), list.n, list.most))
		}
	}
	pod := &template.Spec
	if n := len(pod.Containers) + len(pod.InitContainers) + len(pod.EphemeralContainers); n > MaxContainers {
		errs = append(errs, field.TooMany(containersPath, n, MaxContainers))
	}
	return errs
}

// keys refuses lists with a repeated key that Kubernetes accepts: the API server creates a child
// with such a list, and refuses every later server-side apply of it.
func keys(template *corev1.PodTemplateSpec) field.ErrorList {
	meta, path, pod := root.Child("metadata"), root.Child("spec"), &template.Spec
	errs := unique(meta.Child("finalizers"), "", template.Finalizers, func(name *string) string { return *name })
	errs = append(errs, unique(meta.Child("ownerReferences"), "uid", template.OwnerReferences, func(o *metav1.OwnerReference) types.UID { return o.UID })...)
	errs = append(errs, unique(path.Child("hostAliases"), "ip", pod.HostAliases, func(a *corev1.HostAlias) string { return a.IP })...)
	errs = append(errs, unique(path.Child("imagePullSecrets"), "name", pod.ImagePullSecrets, func(s *corev1.LocalObjectReference) string { return s.Name })...)
	for at, c := range containers(pod) {
		errs = append(errs, containerKeys(at, c)...)
	}
	return errs
}

func containerKeys(path *field.Path, c *corev1.Container) field.ErrorList {
	type port struct {
		number   int32
		protocol corev1.Protocol
	}
	errs := unique(path.Child("ports"), "containerPort", c.Ports, func(p *corev1.ContainerPort) port {
		return port{p.ContainerPort, cmp.Or(p.Protocol, corev1.ProtocolTCP)}
	})
	for i := range errs {
		errs[i].BadValue = errs[i].BadValue.(port).number
	}
	for i := range c.VolumeMounts {
		errs = append(errs, unique(path.Child("volumeMounts").Index(i).Child("bindMountOptions"), "", c.VolumeMounts[i].BindMountOptions,
			func(option *string) string { return *option })...)
	}
	errs = append(errs, unique(path.Child("env"), "name", c.Env, func(v *corev1.EnvVar) string { return v.Name })...)
	return append(errs, unique(path.Child("resources", "claims"), "name", c.Resources.Claims, func(c *corev1.ResourceClaim) string { return c.Name })...)
}

// unique refuses items with the key of an earlier item. name is the field of an item that has
// the key, "" if it is the item itself.
func unique[T any, K comparable](path *field.Path, name string, list []T, key func(*T) K) field.ErrorList {
	if len(list) < 2 {
		return nil
	}
	var errs field.ErrorList
	seen := make(map[K]bool, len(list))
	for i := range list {
		k := key(&list[i])
		if seen[k] {
			at := path.Index(i)
			if name != "" {
				at = at.Child(name)
			}
			errs = append(errs, field.Duplicate(at, k))
		}
		seen[k] = true
	}
	return errs
}

// labels refuses other values for the labels that the operator sets.
func (p *Pods) labels(path *field.Path, written map[string]string) field.ErrorList {
	ours := p.Labels()
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(ours)) {
		if value, ok := written[key]; ok && value != ours[key] {
			errs = append(errs, field.Invalid(path.Key(key), value,
				"may not differ from the operator's value, because selectors use this label; remove it"))
		}
	}
	return rules.MarkUnbuildable(errs...)
}

// maxSelector is the maximum number of labels of a selector.
const maxSelector = 64

// selector refuses a selector that a Deployment cannot have, and one that does not select the pods of
// the template.
func (p *Pods) selector(template *corev1.PodTemplateSpec) field.ErrorList {
	switch {
	case p.MatchLabels != nil && !p.adopted():
		return field.ErrorList{field.Required(selectorPath, "must have a label; remove it if the object does not adopt a Deployment")}
	case len(p.MatchLabels) > maxSelector:
		return rules.MarkUnbuildable(field.TooMany(selectorPath, len(p.MatchLabels), maxSelector))
	}
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(p.MatchLabels)) {
		value := p.MatchLabels[key]
		wrong := metav1validation.ValidateLabels(map[string]string{key: value}, selectorPath.Key(key))
		if got, ok := template.Labels[key]; len(wrong) == 0 && (!ok || got != value) {
			wrong = append(wrong, field.Invalid(labelsPath.Key(key), got,
				fmt.Sprintf("must be %q, as in spec.selector, which has to select the pods", value)))
		}
		errs = append(errs, wrong...)
	}
	return rules.MarkUnbuildable(errs...)
}

// SelectorChange returns the error of an update that changes spec.selector.
func SelectorChange(now, was map[string]modelv1.LabelValue) field.ErrorList {
	if maps.Equal(now, was) {
		return nil
	}
	return field.ErrorList{field.Forbidden(selectorPath, "cannot be set, changed or removed after creation, because that of a Deployment cannot")}
}

// RestartWarning returns a warning if an update sets or removes spec.restartOnChange, which replaces the pods.
func RestartWarning(value, old modelv1.RestartOnChange) []string {
	const referenced = modelv1.RestartOnChangeReferenced
	if (value == referenced) == (old == referenced) {
		return nil
	}
	return []string{"spec.restartOnChange: this change replaces the pods once, by a rollout"}
}

// Warnings returns warnings on what in spec.image, and in spec.podTemplate, is valid, but ignored or
// likely to be a mistake.
func (p *Pods) Warnings() []string {
	template, _ := Decode(p.Template)
	main := p.Container
	var out []string
	for _, c := range containers(&cmp.Or(template, &corev1.PodTemplateSpec{}).Spec) {
		if c.Name == main.Name {
			main.ImagePullPolicy = cmp.Or(main.ImagePullPolicy, c.ImagePullPolicy)
		}
	}
	out = append(out, imageWarning(imagePath, "spec.imagePullPolicy", &main)...)
	if template == nil {
		return out
	}
	for path, c := range containers(&template.Spec) {
		out = append(out, imageWarning(path.Child("image"), "imagePullPolicy", c)...)
	}
	out = append(out, metaWarnings(&template.ObjectMeta)...)
	if template.Spec.DeprecatedServiceAccount != "" && template.Spec.ServiceAccountName == "" {
		out = append(out, root.Child("spec", "serviceAccount").String()+": deprecated and ignored; use serviceAccountName")
	}
	if _, ok := template.Annotations[api.AnnotationRestartedAt]; ok {
		out = append(out, annotationsPath.Key(api.AnnotationRestartedAt).String()+
			": ignored; use kubectl rollout restart or an Eru")
	}
	return out
}

// metaWarnings returns warnings on metadata that a Deployment or a DaemonSet does not
// copy to its pods.
func metaWarnings(meta *metav1.ObjectMeta) []string {
	var out []string
	others := *meta
	others.Labels, others.Annotations, others.Finalizers = nil, nil, nil
	set, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(&others) // It was decoded from JSON.
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if set[name] != nil {
			out = append(out, root.Child("metadata", name).String()+": ignored; only labels and annotations are copied to the pods")
		}
	}
	if len(meta.Finalizers) > 0 {
		out = append(out, root.Child("metadata", "finalizers").String()+": deleted pods remain until all finalizers are removed")
	}
	return out
}

// imageWarning returns the warning on the image of a container, whose imagePullPolicy has a name.
func imageWarning(path *field.Path, policy string, c *corev1.Container) []string {
	if c.ImagePullPolicy != "" {
		policy = ""
	}
	if sentence := rules.ImageWarning(path, c.Image, policy); sentence != "" {
		return []string{sentence}
	}
	return nil
}

// The API server's flag --allow-privileged decides whether privileged containers are
// allowed; clusters set it. The validation reads this variable of the process.
func init() { capabilities.Setup(true, 0) }

// kubernetes returns the errors that the API server would return for a Deployment or a DaemonSet
// with these pods, in any order. It runs the code of Kubernetes itself, of the version in go.mod and
// with the feature gates that are on by default. An API server of another version, or with other
// feature gates, may accept or refuse other children; its errors are reported in the object's status.
func kubernetes(effective *corev1.PodTemplateSpec) field.ErrorList {
	template := effective.DeepCopy()
	for _, c := range containers(&template.Spec) {
		c.Image = c.Image[:min(len(c.Image), maxImage)]
	}
	return append(missingClaims(&template.Spec), asServer(template)...)
}

// containers iterates over the containers of a pod, and then over its init containers, with their paths.
func containers(pod *corev1.PodSpec) iter.Seq2[*field.Path, *corev1.Container] {
	return func(yield func(*field.Path, *corev1.Container) bool) {
		for i := range pod.Containers {
			if !yield(containersPath.Index(i), &pod.Containers[i]) {
				return
			}
		}
		for i := range pod.InitContainers {
			if !yield(initContainersPath.Index(i), &pod.InitContainers[i]) {
				return
			}
		}
	}
}

// maxImage is a length in bytes above which no image is valid, by the rules of images. To
// set its defaults, Kubernetes parses an image of any length by a regular expression.
const maxImage = 4096

// missingClaims returns an error for each claim of a container that the pod does not
// have, and removes these claims from the containers. Kubernetes lists all claims of the
// pod in each of its errors, which took 500 MB for a template of 128 KiB.
func missingClaims(spec *corev1.PodSpec) field.ErrorList {
	have := make(map[string]bool, len(spec.ResourceClaims))
	for i := range spec.ResourceClaims {
		have[spec.ResourceClaims[i].Name] = true
	}
	var errs field.ErrorList
	for path, c := range containers(spec) {
		before := len(errs)
		for at, claim := range c.Resources.Claims {
			if !have[claim.Name] {
				err := field.NotFound(path.Child("resources", "claims").Index(at).Child("name"), claim.Name)
				err.Detail = "must be the name of one of spec.podTemplate.spec.resourceClaims"
				errs = append(errs, err)
			}
		}
		if len(errs) > before {
			c.Resources.Claims = nil
		}
	}
	return errs
}

// asServer runs what the API server runs when a Deployment or a DaemonSet is
// created: defaults, conversion, PrepareForCreate and Validate of
// k8s.io/kubernetes/pkg/registry/apps.
func asServer(template *corev1.PodTemplateSpec) field.ErrorList {
	object := &corev1.PodTemplate{Template: *template}
	corev1defaults.SetObjectDefaults_PodTemplate(object)
	pods := &core.PodTemplateSpec{}
	if err := corev1defaults.Convert_v1_PodTemplateSpec_To_core_PodTemplateSpec(&object.Template, pods, nil); err != nil {
		return field.ErrorList{field.InternalError(root, err)}
	}
	pod.DropDisabledTemplateFields(pods, nil)
	errs := validation.ValidatePodTemplateSpec(pods, root, pod.GetValidationOptionsFromPodTemplate(pods, nil))
	return append(errs, forWorkload(&pods.Spec)...)
}

// forWorkload returns the errors of the two rules that package apps adds for pods
// of a Deployment or a DaemonSet (ValidatePodTemplateSpecForReplicaSet,
// ValidateDaemonSetSpec).
func forWorkload(spec *core.PodSpec) field.ErrorList {
	var errs field.ErrorList
	at := root.Child("spec")
	if spec.RestartPolicy != core.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(at.Child("restartPolicy"), spec.RestartPolicy, []core.RestartPolicy{core.RestartPolicyAlways}))
	}
	if spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(at.Child("activeDeadlineSeconds"), "not supported for the pods of a Deployment or a DaemonSet; remove it"))
	}
	return errs
}
