// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout reads the revisions of a Deployment, and computes how the object that
// controls it returns to one of them.
package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
	"github.com/modelbox-operator/modelbox-operator/kinds/fieldownership"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
)

// annotationChangeCause is what kubectl writes into a ReplicaSet.
const annotationChangeCause = "kubernetes.io/change-cause"

// Revision is a revision of a Deployment: one of its ReplicaSets.
type Revision struct {
	Number  int64       `json:"revision"`
	Created metav1.Time `json:"created"`
	Image   string      `json:"image"`
	// Model is the URI of spec.model, and Digest what is known of its bytes: sha256: and 64 digits.
	Model       string `json:"model,omitempty"`
	Digest      string `json:"digest,omitempty"`
	Replicas    int32  `json:"replicas"`
	ChangeCause string `json:"changeCause,omitempty"`
	// Current is that the Deployment rolls out, or has rolled out, this revision.
	Current bool `json:"current,omitempty"`
	// RolledBack is why the rollout of the spec has failed, so that the current revision serves in place
	// of it.
	RolledBack string `json:"rolledBack,omitempty"`

	Template corev1.PodTemplateSpec `json:"-"`
}

// Revisions returns the revisions that the ReplicaSets of a Deployment have, the oldest first.
// container is the name of the main container.
func Revisions(deployment *appsv1.Deployment, sets []appsv1.ReplicaSet, container string) []Revision {
	var out []Revision
	for i := range sets {
		set := &sets[i]
		number, err := deploymentutil.Revision(set) // It is 0 for a ReplicaSet that has none yet.
		if err != nil || number == 0 || !metav1.IsControlledBy(set, deployment) {
			continue
		}
		revision := Revision{
			Number: number, Created: set.CreationTimestamp, Replicas: ptr.Deref(set.Spec.Replicas, 0),
			ChangeCause: set.Annotations[annotationChangeCause], Image: containerOf(&set.Spec.Template, container).Image, Template: set.Spec.Template,
		}
		revision.Model, revision.Digest = modelOf(&set.Spec.Template.Spec)
		out = append(out, revision)
	}
	slices.SortFunc(out, func(a, b Revision) int { return cmp.Compare(a.Number, b.Number) })
	if len(out) > 0 {
		out[len(out)-1].Current = true // The one that is rolled out gets the highest number.
	}
	return out
}

// modelOf returns the URI of spec.model in pods, and the digest that it was verified by, "" for
// what they do not say. What a termination message said is known for the current revision alone: a
// ReplicaSet has no place for it that is the operator's.
func modelOf(pod *corev1.PodSpec) (uri, digest string) {
	for i := range pod.Volumes {
		if v := &pod.Volumes[i]; v.Name == models.Volume && v.Image != nil {
			_, digest, _ = strings.Cut(v.Image.Reference, "@")
			return models.Image + "://" + v.Image.Reference, digest
		}
	}
	for i := range pod.InitContainers {
		if c := &pod.InitContainers[i]; models.IsFetcher(c) {
			return models.Fetched(c)
		}
	}
	return "", ""
}

// Find returns the revision of a number, or for 0 the one before the current one: the current one if
// it serves because the rollout of the spec has failed.
func Find(revisions []Revision, number int64) (*Revision, error) {
	n := len(revisions)
	switch {
	case number == 0 && n > 0 && revisions[n-1].RolledBack != "":
		return &revisions[n-1], nil
	case number == 0 && n < 2:
		return nil, fmt.Errorf("there is no revision before the current one: Kubernetes keeps those of spec.revisionHistoryLimit")
	case number == 0:
		return &revisions[n-2], nil
	}
	for i := range revisions {
		if revisions[i].Number == number {
			return &revisions[i], nil
		}
	}
	return nil, fmt.Errorf("there is no revision %d; see the command history", number)
}

// containerOf returns a container of a pod template, an empty one if there is none of its name.
func containerOf(template *corev1.PodTemplateSpec, name string) *corev1.Container {
	for i := range template.Spec.Containers {
		if template.Spec.Containers[i].Name == name {
			return &template.Spec.Containers[i]
		}
	}
	return &corev1.Container{}
}

// volatile are parts of a pod template that differ between revisions of the same state.
var volatile = []string{appsv1.DefaultDeploymentUniqueLabelKey, api.AnnotationRestartedAt, api.AnnotationConfiguration}

// restored are the names of the restored fields in a container, and in the spec that they come
// from.
var restored = map[string]string{
	"image": "image", "command": "command", "args": "args", "env": "envs", "envFrom": "envFrom", "resources": "resources",
}

// Changes returns the fields of a spec that have to be changed to return from one pod template to
// another, with their values there; nil is that the field is not set. The other result is the diff
// of what differs in the pod templates and has no such field: with it, the first is not enough.
// container is the name of the main container.
func Changes(from, to *corev1.PodTemplateSpec, container string) (spec map[string]any, others string, err error) {
	before, a, err := split(from, container)
	if err != nil {
		return nil, "", err
	}
	after, b, err := split(to, container)
	if err != nil {
		return nil, "", err
	}
	spec = map[string]any{}
	for name, field := range restored {
		if !reflect.DeepEqual(before[name], after[name]) {
			spec[field] = after[name]
		}
	}
	others, err = render.Unified("pod template (current)", "pod template (revision)", a, b)
	return spec, others, err
}

// Pending returns a revision's pod template with the restored fields of the template that the
// operator makes of the object now: they differ while a change has not been rolled out, as when
// the object is paused.
func Pending(current, desired *corev1.PodTemplateSpec, container string) *corev1.PodTemplateSpec {
	pending := current.DeepCopy()
	restore(containerOf(pending, container), containerOf(desired, container))
	return pending
}

// restore copies the restored fields of a container.
func restore(into, from *corev1.Container) {
	into.Image, into.Command, into.Args = from.Image, from.Command, from.Args
	into.Env, into.EnvFrom, into.Resources = from.Env, from.EnvFrom, from.Resources
}

// split returns the fields of the container of a pod template, and as YAML what is left of the
// template without the fields that undo restores, those that follow them, and those that always
// differ.
func split(template *corev1.PodTemplateSpec, container string) (fields map[string]any, others string, err error) {
	if fields, err = runtime.DefaultUnstructuredConverter.ToUnstructured(containerOf(template, container)); err != nil {
		return nil, "", err
	}
	rest := template.DeepCopy()
	restore(containerOf(rest, container), &corev1.Container{})
	for i := range rest.Spec.InitContainers {
		if c := &rest.Spec.InitContainers[i]; models.IsFetcher(c) {
			*c = models.WithoutFetcher(*c)
			c.Resources = corev1.ResourceRequirements{} // They follow the main container's.
		}
	}
	for _, key := range volatile {
		delete(rest.Labels, key)
		delete(rest.Annotations, key)
	}
	if len(rest.Annotations) == 0 {
		rest.Annotations = nil
	}
	text, err := yaml.Marshal(rest)
	return fields, string(text), err
}

// Apply returns a copy of an object with the changed fields of its spec. resourceType becomes the
// preset whose resources they are, and custom for others. An error is that of the rules.
func Apply(kind *kinds.Kind, obj *unstructured.Unstructured, spec map[string]any) (*unstructured.Unstructured, error) {
	changed := obj.DeepCopy()
	content, _ := changed.Object["spec"].(map[string]any) // The schema requires it.
	maps.Copy(content, spec)
	maps.DeleteFunc(content, func(_ string, value any) bool { return value == nil })
	_, resources := spec["resources"]
	if !resources || kind != kinds.ModelBox() {
		_, err := Template(kind, changed)
		return changed, err
	}
	current, _, err := unstructured.NestedString(obj.Object, "spec", "resourceType")
	for _, preset := range []modelv1.ResourceType{
		modelv1.ResourceType(current), modelv1.ResourceTypeSmall, modelv1.ResourceTypeMedium, modelv1.ResourceTypeLarge, modelv1.ResourceTypeCustom,
	} {
		content["resourceType"] = string(preset)
		if _, err = Template(kind, changed); err == nil {
			break
		}
	}
	return changed, err
}

// Template returns the pod template that the operator makes of a ModelBox or an App with the spec
// of obj, with the defaults of the API server. An error is that of the rules of admission.
func Template(kind *kinds.Kind, obj *unstructured.Unstructured) (*corev1.PodTemplateSpec, error) {
	clean := kind.Unstructured()
	clean.SetName(obj.GetName())
	clean.Object["spec"] = obj.Object["spec"]
	resp := create.Dry(kind, create.Request{Object: clean, Namespace: metav1.NamespaceDefault, AllowUnknown: true})
	if err := resp.Err(); err != nil {
		return nil, fmt.Errorf("object is no longer valid: %w", err)
	}
	children, err := render.Children(kind, resp.Object, render.Fetcher)
	if err != nil {
		return nil, err
	}
	render.SetDefaults(children[0])
	return render.TemplateOf(children[0]), nil
}

// gitOps are parts of the names of field managers of GitOps tools and of Helm, which own what
// they have written also when they do not use server-side apply.
var gitOps = []string{"argocd", "argo-cd", "kustomize-controller", "helm", "flux", "fleet", "kapp", "pulumi", "terraform", "hashicorp"}

// Owners says which field managers will change some fields of a spec back: those that
// own them by a server-side apply, and those of GitOps tools. own is the command's own one.
func Owners(entries []metav1.ManagedFieldsEntry, fields []string, own string) (out []string) {
	for _, entry := range entries {
		if entry.Manager == own || entry.Subresource != "" || entry.Operation != metav1.ManagedFieldsOperationApply && !IsGitOps(entry.Manager) {
			continue
		}
		set, owned := FieldsOf(entry.FieldsV1), []string(nil)
		for _, field := range fields {
			if fieldownership.Has(set, fieldpath.MakePathOrDie("spec", field)) {
				owned = append(owned, "spec."+field)
			}
		}
		if len(owned) > 0 {
			out = append(out, fmt.Sprintf("field manager %q owns %s", entry.Manager, strings.Join(owned, ", ")))
		}
	}
	return out
}

// IsGitOps reports whether a field manager is a GitOps tool, or Helm.
func IsGitOps(manager string) bool {
	return slices.ContainsFunc(gitOps, func(part string) bool { return strings.Contains(strings.ToLower(manager), part) })
}

// WithoutForeignEnv returns a copy of a revision's pod template without the environment variables
// of the container that another field manager has added to the operator's Deployment: they are
// neither in the pod template that the operator makes of the object, nor owned by the operator.
func WithoutForeignEnv(revision *corev1.PodTemplateSpec, deployment *appsv1.Deployment, desired *corev1.PodTemplateSpec, container string) *corev1.PodTemplateSpec {
	foreign, ours := sets.New[string](), OfOperator(deployment.ManagedFields)
	for _, variable := range containerOf(&deployment.Spec.Template, container).Env {
		named := fieldpath.KeyByFields("name", variable.Name)
		if !ours.Has(fieldpath.MakePathOrDie("spec", "template", "spec", "containers", fieldpath.KeyByFields("name", container), "env", named)) {
			foreign.Insert(variable.Name)
		}
	}
	for _, variable := range containerOf(desired, container).Env {
		foreign.Delete(variable.Name)
	}
	out := revision.DeepCopy()
	main := containerOf(out, container)
	main.Env = slices.DeleteFunc(main.Env, func(v corev1.EnvVar) bool { return foreign.Has(v.Name) })
	return out
}

// OfOperator returns the fields that the operator owns of a child.
func OfOperator(entries []metav1.ManagedFieldsEntry) *fieldpath.Set {
	ours := &fieldpath.Set{}
	for _, entry := range entries {
		if entry.Manager == api.FieldManager && entry.Subresource == "" {
			ours = ours.Union(FieldsOf(entry.FieldsV1))
		}
	}
	return ours
}

// FieldsOf decodes a set of fields. It is empty if it cannot be decoded.
func FieldsOf(encoded *metav1.FieldsV1) *fieldpath.Set {
	set, err := fieldownership.Fields(metav1.ManagedFieldsEntry{FieldsV1: encoded})
	if err != nil {
		return &fieldpath.Set{}
	}
	return set
}
