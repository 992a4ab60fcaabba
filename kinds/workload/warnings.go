// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/kinds/windows"
)

// RestartWarning returns a warning if an update sets or removes spec.restartOnChange, which
// replaces the pods.
func RestartWarning(value, old modelv1.RestartOnChange) []string {
	const referenced = modelv1.RestartOnChangeReferenced
	if (value == referenced) == (old == referenced) {
		return nil
	}
	return []string{"spec.restartOnChange: this change replaces the pods once, by a rollout"}
}

// HoldWarning returns a warning if spec.holdChanges makes an update wait, with the time at which it
// replaces the pods, or if it has no effect. same reports whether the update leaves the pods as they
// are.
func HoldWarning(hold modelv1.HoldChanges, spec modelv1.Windows, now time.Time, same func() bool) []string {
	const path = "spec.holdChanges: "
	if hold != modelv1.HoldChangesAll {
		return nil
	}
	if len(spec.Windows) == 0 {
		return []string{path + "without windows, no change waits"}
	}
	opens, ok := windows.HeldUntil(hold, spec, now)
	if !ok || same() {
		return nil
	}
	return []string{path + "this change replaces the pods when the next window opens, at " + opens.Format(time.RFC3339)}
}

// SameEffective reports whether two specs have the same pod template. One that is invalid differs from
// any other.
func SameEffective(a, b *Pods) bool {
	first, errs := a.Effective()
	second, more := b.Effective()
	return len(errs)+len(more) == 0 && equality.Semantic.DeepEqual(first, second)
}

// Warnings returns warnings on what in spec.image, and in spec.podTemplate, is valid, but ignored
// or likely to be a mistake.
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
