// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/kinds/fieldownership"
)

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
		set, owned := fieldownership.Of(&metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{entry}}), []string(nil)
		for _, field := range fields {
			if set.IsSet("/spec/"+field, nil) {
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
		if entry.Manager == apply.FieldManager && entry.Subresource == "" {
			ours = ours.Union(FieldsOf(entry.FieldsV1))
		}
	}
	return ours
}

// FieldsOf decodes a set of fields. It is empty if it cannot be decoded.
func FieldsOf(encoded *metav1.FieldsV1) *fieldpath.Set {
	set := &fieldpath.Set{}
	if encoded == nil || set.FromJSON(bytes.NewReader(encoded.GetRawBytes())) != nil {
		return &fieldpath.Set{}
	}
	return set
}
