// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Apply is how kubectl applies the manifests.
type Apply struct {
	// ServerSide and Force are the flags --server-side and --force-conflicts of kubectl apply, and
	// Manager is that of --field-manager.
	ServerSide, Force bool
	Manager           string
}

// The field managers of kubectl apply.
const (
	ClientSideManager = "kubectl-client-side-apply"
	ServerSideManager = "kubectl"
)

// ask sends the request of kubectl as a dry run, and returns the object as the API server would
// store it; the stored object if kubectl sends no request.
func (a *Apply) ask(ctx context.Context, c client.Client, o *Object) (*unstructured.Unstructured, error) {
	text, err := o.manifest.MarshalJSON()
	if err != nil {
		return nil, err
	}
	last := ""
	if o.before != nil {
		last = o.before.GetAnnotations()[corev1.LastAppliedConfigAnnotation]
	}
	if a.ServerSide {
		answer, err := a.patch(ctx, c, o, types.ApplyPatchType, text)
		if err != nil || a.Manager != ServerSideManager || last == "" {
			return answer, err
		}
		// kubectl then takes over what it has applied on the client's side, and applies again, which
		// no dry run can: what leaves the object is the same as in another apply on the client's side.
	}
	annotated := o.manifest.DeepCopy()
	annotated.SetAnnotations(labels.Merge(annotated.GetAnnotations(), labels.Set{corev1.LastAppliedConfigAnnotation: string(text)}))
	if o.before == nil {
		return annotated, c.Create(ctx, annotated, client.DryRunAll, client.FieldOwner(a.Manager), client.FieldValidation("Strict"))
	}
	patch, err := threeWay(last, annotated, o.before)
	if err != nil || string(patch) == "{}" {
		return o.before, err
	}
	return a.patch(ctx, c, o, types.MergePatchType, patch)
}

// threeWay returns the patch of a client-side apply.
func threeWay(last string, modified, current *unstructured.Unstructured) ([]byte, error) {
	to, err := modified.MarshalJSON()
	if err != nil {
		return nil, err
	}
	from, err := current.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(last), to, from)
}

// patch returns the object with a patch, as the API server would store it.
func (a *Apply) patch(ctx context.Context, c client.Client, o *Object, patchType types.PatchType, patch []byte) (*unstructured.Unstructured, error) {
	options := []client.PatchOption{client.DryRunAll, client.FieldOwner(a.Manager), client.FieldValidation("Strict")}
	if a.Force && patchType == types.ApplyPatchType {
		options = append(options, client.ForceOwnership)
	}
	answer := o.kind.Unstructured()
	answer.SetNamespace(o.Namespace)
	answer.SetName(o.Name)
	return answer, c.Patch(ctx, answer, client.RawPatch(patchType, patch), options...)
}
