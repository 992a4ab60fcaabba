// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
	"github.com/modelbox-operator/modelbox-operator/cli/rollout"
)

// managers returns what else keeps the state of a live object: Helm and GitOps tools, by their
// marks.
func managers(live client.Object) (out []string) {
	application, _, _ := strings.Cut(live.GetAnnotations()["argocd.argoproj.io/tracking-id"], ":")
	for _, mark := range [...]struct{ what, name string }{
		{"Helm release", live.GetAnnotations()["meta.helm.sh/release-name"]},
		{"Argo CD application", application},
		{"Kustomization of Flux", live.GetLabels()["kustomize.toolkit.fluxcd.io/name"]},
		{"HelmRelease of Flux", live.GetLabels()["helm.toolkit.fluxcd.io/name"]},
	} {
		if mark.name != "" {
			out = append(out, fmt.Sprintf("%s %q", mark.what, mark.name))
		}
	}
	for _, entry := range live.GetManagedFields() {
		if len(out) == 0 && rollout.IsGitOps(entry.Manager) {
			out = append(out, fmt.Sprintf("field manager %q", entry.Manager))
		}
	}
	return out
}

// whole are the fields that belong to the operator with everything in them: another field manager
// that owned a default in an item of a list would keep that item alive when the object does not
// have it any more.
var whole = map[string]fieldpath.Path{
	"Deployment": fieldpath.MakePathOrDie("spec", "template"),
	"DaemonSet":  fieldpath.MakePathOrDie("spec", "template"),
	"Service":    fieldpath.MakePathOrDie("spec", "ports"),

	"HorizontalPodAutoscaler": fieldpath.MakePathOrDie("spec"),
	"PodDisruptionBudget":     fieldpath.MakePathOrDie("spec"),
}

// restartedAt is what does not belong to the operator in the pod template: an apply would remove
// it, and so replace the pods.
var restartedAt = fieldpath.MakePathOrDie("spec", "template", "metadata", "annotations", api.AnnotationRestartedAt)

// taken returns the JSON patch of a live child that makes owner its controller, with the uid and the
// resourceVersion as preconditions. Other field managers lose what the operator will apply, so that a
// field which leaves the object leaves the child. They keep everything else: labels, annotations, and
// fields that an object does not have.
func (c child) taken(owner *unstructured.Unstructured) ([]byte, error) {
	entries, err := released(c.live.GetManagedFields(), rollout.OfOperator(c.after.GetManagedFields()), whole[render.KindOf(c.live)])
	if err != nil {
		return nil, err
	}
	references := append(slices.Clone(c.live.GetOwnerReferences()), metav1.OwnerReference{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true),
	})
	patch := []map[string]any{
		{"op": "replace", "path": "/metadata/uid", "value": c.live.GetUID()},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": c.live.GetResourceVersion()},
		{"op": "add", "path": "/metadata/ownerReferences", "value": references},
		{"op": "add", "path": "/metadata/managedFields", "value": entries},
	}
	if c.spec != nil {
		patch = append(patch, map[string]any{"op": "replace", "path": "/spec", "value": c.spec})
	}
	return json.Marshal(patch)
}

// released returns the entries of managedFields without the fields of a set, and without those in
// whole. Entries of subresources, which are those of the status and of scaling, stay.
func released(entries []metav1.ManagedFieldsEntry, ours *fieldpath.Set, whole fieldpath.Path) ([]metav1.ManagedFieldsEntry, error) {
	out := make([]metav1.ManagedFieldsEntry, 0, len(entries))
	for _, entry := range entries {
		if entry.Manager == api.FieldManager || entry.Subresource != "" {
			out = append(out, entry)
			continue
		}
		set := rollout.FieldsOf(entry.FieldsV1)
		rest := set.Difference(ours).RecursiveDifference(fieldpath.NewSet(whole))
		if set.Has(restartedAt) {
			rest.Insert(restartedAt)
		}
		if rest.Empty() {
			continue
		}
		data, err := rest.ToJSON()
		if err != nil {
			return nil, err
		}
		entry.FieldsV1 = metav1.NewFieldsV1(string(data))
		out = append(out, entry)
	}
	return out, nil
}
