// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
)

// The API server in memory is controller-runtime's fake client: its patches are merged, and their
// fields are owned, by the code of the API server.

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

// patched returns the stored object with the patch that kubectl sends, before admission; the stored
// object itself if kubectl sends none.
func (a *Apply) patched(ctx context.Context, o *Object) (*unstructured.Unstructured, error) {
	text, err := o.manifest.MarshalJSON()
	if err != nil {
		return nil, err
	}
	last := o.before.GetAnnotations()[corev1.LastAppliedConfigAnnotation]
	if a.ServerSide {
		patch := client.RawPatch(types.ApplyPatchType, text)
		out, err := a.send(ctx, o.kind, o.before, patch)
		if err != nil || a.Manager != ServerSideManager || last == "" {
			return out, err
		}
		// kubectl takes over what it has applied on the client's side, and applies again.
		if err := csaupgrade.UpgradeManagedFields(out, sets.New(ClientSideManager), a.Manager); err != nil {
			return nil, err
		}
		return a.send(ctx, o.kind, out, patch)
	}
	annotated := o.manifest.DeepCopy()
	annotated.SetAnnotations(labels.Merge(annotated.GetAnnotations(), labels.Set{corev1.LastAppliedConfigAnnotation: string(text)}))
	modified, err := annotated.MarshalJSON()
	if err != nil {
		return nil, err
	}
	current, err := o.before.MarshalJSON()
	if err != nil {
		return nil, err
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(last), modified, current)
	if err != nil || string(patch) == "{}" {
		return o.before, err
	}
	return a.send(ctx, o.kind, o.before, client.RawPatch(types.MergePatchType, patch))
}

// send returns an object with a patch.
func (a *Apply) send(ctx context.Context, kind *kinds.Kind, stored *unstructured.Unstructured, patch client.Patch) (*unstructured.Unstructured, error) {
	schema := create.OpenAPI(kind)
	schema.AddExtension("x-kubernetes-group-version-kind", []any{
		map[string]any{"group": kind.GVK.Group, "version": kind.GVK.Version, "kind": kind.GVK.Kind},
	})
	converter, err := managedfields.NewTypeConverter(map[string]*spec.Schema{kind.GVK.Kind: schema}, false)
	if err != nil {
		return nil, err
	}
	c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithTypeConverters(converter).WithReturnManagedFields().WithObjects(stored.DeepCopy()).Build()
	options := []client.PatchOption{client.FieldOwner(a.Manager)}
	if a.Force {
		options = append(options, client.ForceOwnership)
	}
	out := stored.DeepCopy()
	return out, c.Patch(ctx, out, patch, options...)
}
