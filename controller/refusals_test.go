// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/modelbox-operator/modelbox-operator/controller/cache"
)

// intercepted returns a client whose writes a function sends, with their verb or subresource.
func intercepted(send func(verb string, obj any, do func() error) error) client.WithWatch {
	return interceptor.NewClient(env.Client, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return send("create", obj, func() error { return c.Create(ctx, obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return send("delete", obj, func() error { return c.Delete(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			verb := "patch"
			if patch.Type() == types.ApplyPatchType {
				verb = "apply"
			}
			return send(verb, obj, func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return send("update", obj, func() error { return c.Update(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return send(sub, obj, func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
	})
}

// cached reads from the API server what a process reads from its cache: trimmed objects, and none of
// a kind that the cluster does not have.
type cached struct{ client.Client }

func (c cached) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, optional := obj.(*unstructured.Unstructured); optional && !installed[kindOf(obj)] {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	if err := c.Client.Get(ctx, key, obj, opts...); err != nil {
		return err
	}
	return trim(obj)
}

func trim(obj runtime.Object) error {
	_, err := cache.Trim(obj)
	object := obj.(client.Object) // One of the own kinds has these still.
	object.SetLabels(nil)
	object.SetManagedFields(nil)
	return err
}

// List lists without the field index of the cache, which the API server does not have.
func (c cached) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var kept []client.ListOption
	for _, opt := range opts {
		if _, index := opt.(client.MatchingFields); !index {
			kept = append(kept, opt)
		}
	}
	if err := c.Client.List(ctx, list, kept...); err != nil {
		return err
	}
	return meta.EachListItem(list, trim)
}
