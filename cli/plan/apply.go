// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/limit"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
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

// child is a child before and after; nil if it does not exist.
type child struct{ before, after client.Object }

// reconcile returns the children of an owner before and after the operator writes them.
func (p *Planner) reconcile(ctx context.Context, o *Object, owner client.Object) ([]child, error) {
	if !o.kind.Workload() {
		return nil, nil
	}
	writes, err := o.desired(owner)
	if err != nil {
		return nil, err
	}
	key, children, known := client.ObjectKeyFromObject(owner), []child(nil), []*apply.Child(nil)
	memory := fake.NewClientBuilder().WithScheme(p.Client.Scheme()).WithReturnManagedFields().WithObjects(owner)
	for _, write := range writes {
		before, err := read(ctx, p.Client, key, write.Live)
		if o.isUnknown(write, err) {
			continue
		}
		if err == nil && before != nil {
			KeepConfiguration(o.Stored, write.Desired, before)
			memory.WithObjects(before.DeepCopyObject().(client.Object))
		}
		if err != nil {
			return nil, err
		}
		children, known = append(children, child{before: before}), append(known, write)
	}
	c := memory.Build()
	if err := o.write(ctx, c, owner, known); err != nil {
		return nil, err
	}
	for i := range children {
		if children[i].after, err = read(ctx, c, key, known[i].Live); err != nil {
			return nil, err
		}
		render.SetDefaults(children[i].after)
	}
	return slices.DeleteFunc(children, func(c child) bool { return c == child{} || len(o.Conflicts) > 0 }), nil
}

// isUnknown reports whether a child of a block is not planned, because the cluster does not have its kind, or the user
// may not read it. It adds that to the notes, if there is to be such a child.
func (o *Object) isUnknown(c *apply.Child, err error) bool {
	_, service := c.Live.(*corev1.Service)
	if service || render.TemplateOf(c.Live) != nil || !meta.IsNoMatchError(err) && !apierrors.IsForbidden(err) {
		return false
	}
	if c.Desired != nil {
		o.Notes = append(o.Notes, fmt.Sprintf("what becomes of its %s is not known: %v", limit.KindOf(c.Desired), err))
	}
	return true
}

// desired returns the children that an owner may have; Desired is nil for one that is deleted if it exists.
func (o *Object) desired(owner client.Object) ([]*apply.Child, error) {
	children, err := o.kind.Children(owner, o.fetcher)
	if err != nil {
		return nil, err
	}
	var out []*apply.Child
	for _, empty := range o.kind.ChildKinds() {
		child := &apply.Child{Live: empty}
		for _, desired := range children {
			if limit.KindOf(desired) == limit.KindOf(empty) {
				child.Desired = desired
			}
		}
		out = append(out, child)
	}
	return out, nil
}

// write makes the writes of the operator, or adds why it makes none.
func (o *Object) write(ctx context.Context, c client.Client, owner client.Object, children []*apply.Child) error {
	writer := apply.Writer{Client: c, Live: c, Recorder: &events.FakeRecorder{}}
	of := &apply.Owner{Object: owner, Paused: kinds.IsPaused(o.Stored)}
	err := writer.Read(ctx, of, children...)
	if err == nil {
		_, err = writer.Write(ctx, of, children...)
	}
	if status.HasReason(err, status.ReasonNameConflict) {
		o.Conflicts = append(o.Conflicts, err.Error())
		return nil
	}
	why, err := apply.ReadinessOf(err)
	if why != nil {
		o.Notes = append(o.Notes, why.Message)
	}
	return err
}

// read returns a child with its kind, nil if there is none.
func read(ctx context.Context, c client.Client, key client.ObjectKey, like client.Object) (client.Object, error) {
	obj := apply.NewOf(like)
	err := c.Get(ctx, key, obj)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	gvk, err := c.GroupVersionKindFor(obj)
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj, err
}

// KeepConfiguration gives a desired child the hashes of configuration that the live one has, if its owner has
// spec.restartOnChange: only the controller, which may read the data, knows their values.
func KeepConfiguration(owner *unstructured.Unstructured, desired, live client.Object) {
	asked, _, _ := unstructured.NestedString(owner.Object, "spec", "restartOnChange") // The schema knows its type.
	into, from := render.TemplateOf(desired), render.TemplateOf(live)
	if into == nil || from == nil || asked != string(modelv1.RestartOnChangeReferenced) {
		return
	}
	if into.Annotations == nil {
		into.Annotations = map[string]string{}
	}
	into.Annotations[api.AnnotationConfiguration] = cmp.Or(from.Annotations[api.AnnotationConfiguration], "set by the controller")
}
