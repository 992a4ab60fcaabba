// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
)

// noUID is the uid of an owner that does not exist yet. Nothing is stored with it.
const noUID types.UID = "00000000-0000-0000-0000-000000000000"

// diffAll prints how the children in the cluster would change, and reports whether they would.
func (o *renderOptions) diffAll(ctx context.Context, objects []rendered) (different bool, err error) {
	c, err := o.cluster.client()
	if err != nil {
		return false, err
	}
	namespace, err := o.cluster.namespace()
	if err != nil {
		return false, err
	}
	for _, object := range objects {
		if object.Stored.GetNamespace() == "" {
			object.Stored.SetNamespace(namespace)
		}
		text, err := diffOf(ctx, c, object.Object)
		if err != nil {
			return false, err
		}
		fmt.Fprint(o.Out, text)
		different = different || text != ""
	}
	return different, nil
}

// diffOf returns the diffs of the children of an object.
func diffOf(ctx context.Context, c client.Client, object render.Object) (string, error) {
	uid, err := observe(ctx, c, &object)
	if client.IgnoreNotFound(err) != nil {
		return "", err
	}
	children, err := object.Children(uid)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, child := range children {
		text, err := diffChild(ctx, c, child)
		if err != nil {
			return "", err
		}
		out.WriteString(text)
	}
	if len(children) > 0 && !slices.ContainsFunc(children, func(c client.Object) bool { return kindOf(c) == "Service" }) {
		text, err := diffService(ctx, c, children[0])
		return out.String() + text, err
	}
	return out.String(), nil
}

// observe returns the uid of the object in the cluster. The container that fetches a model stays as
// its status says: the controller keeps it, or replaces it by what its own flags say, which are not known.
func observe(ctx context.Context, c client.Client, object *render.Object) (types.UID, error) {
	owner := object.Kind.New()
	err := c.Get(ctx, client.ObjectKeyFromObject(object.Stored), owner)
	if box, ok := owner.(*modelv1.ModelBox); ok && box.Status.Fetcher != nil {
		object.Fetcher = modelsource.Fetcher{Image: box.Status.Fetcher.Image, Mirrors: box.Status.Fetcher.Mirrors}
	}
	return cmp.Or(owner.GetUID(), noUID), err
}

// diffChild returns the diff of a child with what a server-side apply would make of it.
func diffChild(ctx context.Context, c client.Client, desired client.Object) (string, error) {
	live := desired.DeepCopyObject().(client.Object)
	name := nameOf(desired)
	err := c.Get(ctx, client.ObjectKeyFromObject(desired), live)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return "", err
	case err != nil:
		live = nil
	case !render.ControlledBy(live, desired):
		return fmt.Sprintf("%s exists and is not controlled by the object: the operator does not change it\n", name), nil
	}
	if live != nil { // A client leaves out the kind.
		live.GetObjectKind().SetGroupVersionKind(desired.GetObjectKind().GroupVersionKind())
	}
	manifest, err := apply.Manifest(desired, live)
	if err != nil {
		return "", err
	}
	applied := desired.DeepCopyObject().(client.Object)
	if err := c.Patch(ctx, applied, client.RawPatch(types.ApplyPatchType, manifest),
		client.DryRunAll, client.ForceOwnership, client.FieldOwner(apply.FieldManager)); err != nil {
		return "", fmt.Errorf("dry run of an apply of %s: %w", name, err)
	}
	return render.Diff(name, live, applied)
}

// diffService returns the diff of a Service that the operator would delete, because the object
// has no ports any more.
func diffService(ctx context.Context, c client.Client, sibling client.Object) (string, error) {
	service := &corev1.Service{}
	err := c.Get(ctx, client.ObjectKeyFromObject(sibling), service)
	if err != nil || !render.ControlledBy(service, sibling) {
		return "", client.IgnoreNotFound(err)
	}
	service.APIVersion, service.Kind = "v1", "Service"
	return render.Diff(nameOf(service), service, nil)
}

func nameOf(obj client.Object) string { return kindOf(obj) + "/" + obj.GetName() }

// kindOf returns the kind of a child. A client leaves it out of what it reads.
func kindOf(child client.Object) string {
	switch child.(type) {
	case *corev1.Service:
		return "Service"
	case *appsv1.DaemonSet:
		return "DaemonSet"
	}
	return "Deployment"
}
