// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
)

// noUID is the uid of an owner that does not exist yet. Nothing is stored with it.
const noUID types.UID = "00000000-0000-0000-0000-000000000000"

// runDiff prints how the children in the cluster would change.
func (o *renderOptions) runDiff(ctx context.Context, objects []rendered) error {
	c, err := o.cluster.client()
	if err != nil {
		return &exitError{exitFailed, err}
	}
	namespace, err := o.cluster.namespace()
	if err != nil {
		return &exitError{exitFailed, err}
	}
	different := false
	for _, object := range objects {
		if object.Stored.GetNamespace() == "" {
			object.Stored.SetNamespace(namespace)
		}
		text, err := diffOf(ctx, c, object.Object)
		if err != nil {
			return &exitError{exitFailed, err}
		}
		fmt.Fprint(o.Out, text)
		different = different || text != ""
	}
	if different {
		return &exitError{code: exitNo}
	}
	return nil
}

// diffOf returns the diffs of the children of an object.
func diffOf(ctx context.Context, c client.Client, object render.Object) (string, error) {
	uid, err := uidOf(ctx, c, object)
	if err != nil {
		return "", err
	}
	if err := keepFetcher(ctx, c, &object); err != nil {
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
	if len(children) > 0 && !slices.ContainsFunc(children, isService) {
		text, err := diffService(ctx, c, children[0])
		return out.String() + text, err
	}
	return out.String(), nil
}

// keepFetcher lets the container that fetches a model be as it is in the cluster. The controller
// keeps it as well, or replaces it by what its own flags say, which are not known here.
func keepFetcher(ctx context.Context, c client.Client, object *render.Object) error {
	if object.Kind != kinds.ModelBox() {
		return nil
	}
	live := &appsv1.Deployment{}
	err := c.Get(ctx, client.ObjectKeyFromObject(object.Stored), live)
	if fetcher, ok := workload.FetcherOf(live); err == nil && ok {
		object.Fetcher = fetcher
	}
	return client.IgnoreNotFound(err)
}

func isService(obj client.Object) bool {
	_, ok := obj.(*corev1.Service)
	return ok
}

// uidOf returns the uid of the object in the cluster.
func uidOf(ctx context.Context, c client.Client, object render.Object) (types.UID, error) {
	live := object.Kind.New()
	err := c.Get(ctx, client.ObjectKeyFromObject(object.Stored), live)
	if client.IgnoreNotFound(err) != nil {
		return "", err
	}
	if err != nil {
		return noUID, nil //nolint:nilerr // An object that is not there yet is no error.
	}
	return live.GetUID(), nil
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

func nameOf(obj client.Object) string {
	return fmt.Sprintf("%s/%s", obj.GetObjectKind().GroupVersionKind().Kind, obj.GetName())
}
