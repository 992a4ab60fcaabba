// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
	domain "github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// child is a child that an owner may have: its desired state, nil if there must be none, and what
// it is before and after the operator writes it, nil if it does not exist.
type child struct{ desired, before, after client.Object }

// reconcile returns the children of an owner that exist before or after the operator writes them.
func (p *Planner) reconcile(ctx context.Context, o *Object, owner client.Object) ([]child, error) {
	if !o.kind.HasPods() {
		return nil, nil
	}
	children, err := p.children(ctx, o, owner)
	if err != nil || len(o.Conflicts) > 0 {
		return nil, err
	}
	if err := p.write(ctx, o, owner, children); err != nil || len(o.Conflicts) > 0 {
		return nil, err
	}
	return slices.DeleteFunc(children, func(c child) bool { return c.before == nil && c.after == nil }), nil
}

// children returns the children that an owner may have, as they are before.
func (p *Planner) children(ctx context.Context, o *Object, owner client.Object) ([]child, error) {
	desired, err := o.kind.Children(owner, o.fetcher)
	if err != nil {
		return nil, err
	}
	var out []child
	for _, empty := range o.kind.ChildKinds() {
		c := child{}
		if i := slices.IndexFunc(desired, func(d client.Object) bool { return domain.KindOf(d) == domain.KindOf(empty) }); i >= 0 {
			c.desired = desired[i]
		}
		c.before, err = read(ctx, p.Client, client.ObjectKeyFromObject(owner), empty)
		if o.isUnknown(&c, err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if c.before != nil {
			KeepConfiguration(o.Stored, c.desired, c.before)
		}
		out = append(out, c)
	}
	return out, nil
}

// isUnknown reports whether a child is not planned, because the cluster does not have its kind, or
// the user may not read it. It adds that to the notes, if there is to be such a child.
func (o *Object) isUnknown(c *child, err error) bool {
	if !meta.IsNoMatchError(err) && !apierrors.IsForbidden(err) {
		return false
	}
	if c.desired != nil {
		o.Unknown = o.Unknown || render.TemplateOf(c.desired) != nil
		o.Notes = append(o.Notes, fmt.Sprintf("what becomes of its %s is not known: %v", domain.KindOf(c.desired), err))
	}
	return true
}

// write sets what the operator makes of the children, or adds why it writes none of them.
func (p *Planner) write(ctx context.Context, o *Object, owner client.Object, children []child) error {
	for i := range children {
		c := &children[i]
		c.after = c.before
		if c.desired != nil && c.before != nil && !o.isOwned(c.before, owner) {
			return nil
		}
	}
	for i := range children {
		c := &children[i]
		after, err := p.written(ctx, c, owner)
		if err != nil {
			return err
		}
		diff, err := render.Diff("", c.before, after)
		if err != nil {
			return err
		}
		if diff != "" && kinds.IsPaused(o.Stored) {
			o.Notes = append(o.Notes, "spec.paused is true: changes are not written")
			return nil
		}
		c.after = after
	}
	return nil
}

// isOwned reports whether the operator may write an object of the name of a child, and adds why if
// it may not.
func (o *Object) isOwned(live, owner client.Object) bool {
	controller := cmp.Or(metav1.GetControllerOfNoCopy(live), &metav1.OwnerReference{})
	switch {
	case controller.UID == owner.GetUID() && live.GetDeletionTimestamp() == nil:
		return true
	case controller.Kind == o.kind.GVK.Kind && controller.Name == owner.GetName():
		o.Notes = append(o.Notes, fmt.Sprintf("waiting for the deletion of an old object: %s %q", domain.KindOf(live), live.GetName()))
	default:
		o.Conflicts = append(o.Conflicts, domain.NameConflict(live))
	}
	return false
}

// written returns a child as the operator leaves it, nil if it deletes it.
func (p *Planner) written(ctx context.Context, c *child, owner client.Object) (after client.Object, err error) {
	switch {
	case c.desired == nil && (c.before == nil || metav1.IsControlledBy(c.before, owner) && c.before.GetDeletionTimestamp() == nil):
		return nil, nil
	case c.desired == nil:
		return c.before, nil
	case c.before == nil:
		after = c.desired.DeepCopyObject().(client.Object)
	default:
		after, err = p.applied(ctx, c)
	}
	render.SetDefaults(after)
	return after, err
}

// applied returns a live child after the server-side apply of the operator.
func (p *Planner) applied(ctx context.Context, c *child) (client.Object, error) {
	live := c.before.DeepCopyObject().(client.Object)
	if err := csaupgrade.UpgradeManagedFields(live, sets.New(api.FieldManager), api.FieldManager); err != nil {
		return nil, err
	}
	configuration, err := domain.ApplyConfiguration(c.desired)
	if err != nil {
		return nil, err
	}
	memory := fake.NewClientBuilder().WithScheme(p.Client.Scheme()).WithReturnManagedFields().WithObjects(live).Build()
	after := domain.NewOf(live)
	after.SetNamespace(live.GetNamespace())
	after.SetName(live.GetName())
	err = memory.Patch(ctx, after, client.RawPatch(types.ApplyPatchType, configuration), client.FieldOwner(api.FieldManager), client.ForceOwnership)
	after.GetObjectKind().SetGroupVersionKind(live.GetObjectKind().GroupVersionKind())
	return after, err
}

// read returns a child with its kind, nil if there is none.
func read(ctx context.Context, c client.Client, key client.ObjectKey, like client.Object) (client.Object, error) {
	obj := domain.NewOf(like)
	err := c.Get(ctx, key, obj)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// The API server sets it in each DaemonSet, for the manager that created that.
	annotations := obj.GetAnnotations()
	delete(annotations, appsv1.DeprecatedTemplateGeneration)
	obj.SetAnnotations(annotations)
	gvk, err := c.GroupVersionKindFor(obj)
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj, err
}

// KeepConfiguration gives a desired child the hashes of configuration that the live one has, if its
// owner has spec.restartOnChange, and the pods refer to any: only the controller, which may read
// the data, knows their values.
func KeepConfiguration(owner *unstructured.Unstructured, desired, live client.Object) {
	asked, _, _ := unstructured.NestedString(owner.Object, "spec", "restartOnChange") // The schema knows its type.
	into, from := render.TemplateOf(desired), render.TemplateOf(live)
	if into != nil && len(workload.References(into)) == 0 {
		return
	}
	if into == nil || from == nil || asked != string(modelv1.RestartOnChangeReferenced) {
		return
	}
	if into.Annotations == nil {
		into.Annotations = map[string]string{}
	}
	into.Annotations[api.AnnotationConfiguration] = cmp.Or(from.Annotations[api.AnnotationConfiguration], "set by the controller")
}
