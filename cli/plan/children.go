// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
	domain "github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// child is a child that an owner may have: its desired state, nil if there must be none, and what
// it is before and after the operator writes it, nil if it does not exist. refused is why the user
// may not read it.
type child struct {
	desired, before, after client.Object
	refused                error
}

// children returns what the operator writes for an owner, before and after that; none if it writes
// nothing, which it adds to the conflicts or the notes.
func (p *Planner) children(ctx context.Context, o *Object, owner client.Object, desired []client.Object) ([]child, error) {
	if ud, ok := owner.(*extensionv1.UnitedDeployment); ok && len(o.Conflicts) == 0 {
		return p.scale(ctx, o, ud)
	}
	if o.kept {
		return nil, nil
	}
	children, err := p.observe(ctx, o, owner, desired)
	if err != nil {
		return nil, err
	}
	for i := range children {
		if err := p.write(ctx, o, owner, &children[i]); err != nil {
			return nil, err
		}
		diff, err := render.Diff("", children[i].before, children[i].after)
		if err != nil {
			return nil, err
		}
		if diff != "" && kinds.IsPaused(o.Stored) {
			o.Notes = append(o.Notes, "spec.paused is true: changes are not written")
			return nil, nil
		}
	}
	return children, nil
}

// observe returns the children of an owner that exist or are desired, as they are before; none if
// the operator may not write one of them.
func (p *Planner) observe(ctx context.Context, o *Object, owner client.Object, desired []client.Object) (children []child, err error) {
	if !o.kind.HasPods() {
		return nil, nil
	}
	for _, empty := range o.kind.ChildKinds() {
		before, err := p.read(ctx, client.ObjectKey{Namespace: owner.GetNamespace(), Name: domain.ChildName(owner, empty)}, empty)
		c := child{desired: ofKind(desired, empty), before: before, refused: err}
		switch missing := meta.IsNoMatchError(err); {
		case err != nil && !missing && !apierrors.IsForbidden(err):
			return nil, err
		case c.desired == nil && c.before == nil:
			continue
		case missing:
			o.Notes = append(o.Notes, fmt.Sprintf("what becomes of its %s is not known: %v", domain.KindOf(c.desired), err))
			continue
		case c.desired != nil && c.before != nil && !o.isOwned(c.before, owner):
			return nil, nil
		}
		KeepConfiguration(o.Stored, c.desired, c.before)
		children = append(children, c)
	}
	return children, nil
}

// ofKind returns the child of the kind of another object, nil if there is none.
func ofKind(children []client.Object, like client.Object) client.Object {
	for _, child := range children {
		if domain.KindOf(child) == domain.KindOf(like) {
			return child
		}
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

// write sets a child as the operator leaves it.
func (p *Planner) write(ctx context.Context, o *Object, owner client.Object, c *child) error {
	err := c.refused
	switch {
	case err != nil:
	case c.desired != nil:
		c.after, err = p.written(ctx, c.desired, c.before)
	case !metav1.IsControlledBy(c.before, owner) || c.before.GetDeletionTimestamp() != nil:
		c.after = c.before // Otherwise the operator deletes it.
	}
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) && !apierrors.IsInternalError(err) {
		return err
	}
	o.Notes = append(o.Notes, fmt.Sprintf("its %s is compared as the operator builds it: %v", domain.KindOf(c.desired), err))
	c.after = withDefaults(c.desired)
	if o.before == nil || c.before == nil && c.refused == nil || !apierrors.IsForbidden(err) {
		return nil // One that is invalid with what others have written is replaced by the operator.
	}
	return o.rebuild(c)
}

// rebuild sets a child that the user may not read or write as the operator builds it before the
// apply as well: what others have written to it is no difference.
func (o *Object) rebuild(c *child) error {
	_, children, err := o.build(o.before)
	built := ofKind(children, c.desired)
	if built == nil {
		return err
	}
	if set, ok := built.(*appsv1.DaemonSet); ok {
		nodes, _, _ := unstructured.NestedInt64(o.before.Object, "status", "desired") // The schema knows its type.
		set.Status.DesiredNumberScheduled = int32(nodes)                              //nolint:gosec // It is an int32 in the schema.
	}
	KeepConfiguration(o.before, built, c.before)
	c.before = withDefaults(built)
	return nil
}

func withDefaults(child client.Object) client.Object {
	render.SetDefaults(child)
	return child
}

// read returns a live object with its kind, nil if there is none.
func (p *Planner) read(ctx context.Context, key client.ObjectKey, like client.Object) (client.Object, error) {
	obj := domain.NewOf(like)
	if err := p.Client.Get(ctx, key, obj); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	gvk, err := p.Client.GroupVersionKindFor(obj)
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj, err
}

// KeepConfiguration gives a desired child the hashes of configuration that the live one has, if its
// owner has spec.restartOnChange, and the pods refer to any: only the controller, which may read
// the data, knows their values.
func KeepConfiguration(owner *unstructured.Unstructured, desired, live client.Object) {
	asked, _, _ := unstructured.NestedString(owner.Object, "spec", "restartOnChange") // The schema knows its type.
	into, from := render.TemplateOf(desired), render.TemplateOf(live)
	if into == nil || from == nil || len(workload.References(into)) == 0 || asked != string(modelv1.RestartOnChangeReferenced) {
		return
	}
	if into.Annotations == nil {
		into.Annotations = map[string]string{}
	}
	into.Annotations[api.AnnotationConfiguration] = cmp.Or(from.Annotations[api.AnnotationConfiguration], "set by the controller")
}
