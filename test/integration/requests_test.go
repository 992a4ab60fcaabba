// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"encoding/json"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// do is a request of a user for an object of a kind.
type do func(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error

// state is that of the object before the request.
type state int

const (
	absent state = iota
	stored
	deleting
)

var dryRun = []string{metav1.DryRunAll}

// requests are all ways in which a user can read or write an object, by name. What changes the spec
// merges the changed fields of the kind into it.
var requests = map[string]struct {
	before state
	do     do
}{
	"get": {stored, get()}, "get the status": {stored, get("status")}, "get the scale": {stored, get("scale")},
	"list": {stored, func(ctx context.Context, _ kind, c dynamic.ResourceInterface, _ *unstructured.Unstructured) error {
		_, err := c.List(ctx, metav1.ListOptions{})
		return err
	}},
	"watch": {stored, func(ctx context.Context, _ kind, c dynamic.ResourceInterface, _ *unstructured.Unstructured) error {
		watch, err := c.Watch(ctx, metav1.ListOptions{})
		if err == nil {
			watch.Stop()
		}
		return err
	}},
	"create": {absent, create(dryRun)},
	"create for good": {absent, func(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		obj.SetName("created")
		return create(nil)(ctx, k, c, obj)
	}},
	"create with generateName": {absent, func(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		obj.SetGenerateName("generated-")
		obj.SetName("")
		return create(nil)(ctx, k, c, obj)
	}},
	"create as one that is being deleted": {absent, func(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		now := metav1.Now()
		obj.SetDeletionTimestamp(&now)
		return create(dryRun)(ctx, k, c, obj)
	}},
	"create by apply": {absent, func(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		obj.SetName("applied")
		return apply(ctx, k, c, obj)
	}},
	"update the spec": {stored, updateSpec(nil)}, "update the spec, as a dry run": {stored, updateSpec(dryRun)},
	"merge patch of the spec": {stored, patchSpec(nil)},
	"JSON patch of the spec": {stored, func(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		var patch []map[string]any
		for field, value := range k.changed {
			patch = append(patch, map[string]any{"op": "add", "path": "/spec/" + field, "value": value})
		}
		data, err := json.Marshal(patch)
		if err != nil {
			return err
		}
		_, err = c.Patch(ctx, obj.GetName(), types.JSONPatchType, data, metav1.PatchOptions{})
		return err
	}},
	"apply another spec": {stored, func(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		return apply(ctx, k, c, changed(k, applied(k, obj)))
	}},
	"apply the same spec": {stored, func(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		return apply(ctx, k, c, applied(k, obj))
	}},
	"update without a change": {stored, func(ctx context.Context, _ kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		_, err := c.Update(ctx, obj, metav1.UpdateOptions{})
		return err
	}},
	"patch of a label":                           {stored, patchOf(`{"metadata":{"labels":{"a":"b"}}}`)},
	"patch of rollout-now":                       {stored, patchOf(`{"metadata":{"annotations":{"modelbox-operator.github.io/rollout-now":"2"}}}`)},
	"removal of rollout-now":                     {stored, patchOf(`{"metadata":{"annotations":{"modelbox-operator.github.io/rollout-now":null}}}`)},
	"patch of finalizers":                        {stored, patchOf(`{"metadata":{"finalizers":["example.com/another"]}}`)},
	"patch of the spec and of deletionTimestamp": {stored, patchSpec(map[string]any{"deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0})},
	"update the status": {stored, func(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		// A change of the spec in this request is dropped by the API server.
		_, err := c.UpdateStatus(ctx, changed(k, obj), metav1.UpdateOptions{})
		return err
	}},
	"patch of the status": {stored, patchOf(`{"status":{"observedGeneration":1}}`, "status")},
	"update the scale": {stored, func(ctx context.Context, _ kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		scale := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": map[string]any{"replicas": int64(3)}}}
		scale.SetName(obj.GetName())
		scale.SetNamespace(obj.GetNamespace())
		_, err := c.Update(ctx, scale, metav1.UpdateOptions{}, "scale")
		return err
	}},
	"patch of the scale": {stored, patchOf(`{"spec":{"replicas":3}}`, "scale")},
	"delete":             {stored, remove(nil)}, "delete, as a dry run": {stored, remove(dryRun)},
	"delete a collection": {stored, func(ctx context.Context, _ kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		return c.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=" + obj.GetName()})
	}},
	"patch of the spec while it is being deleted":        {deleting, patchSpec(nil)},
	"removal of the finalizer while it is being deleted": {deleting, patchOf(`{"metadata":{"finalizers":null}}`)},
}

func get(subresource ...string) do {
	return func(ctx context.Context, _ kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		_, err := c.Get(ctx, obj.GetName(), metav1.GetOptions{}, subresource...)
		return err
	}
}

func create(dry []string) do {
	return func(ctx context.Context, _ kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		// The manager is one that the policy of the controller allows, which sends such a request too.
		_, err := c.Create(ctx, obj, metav1.CreateOptions{DryRun: dry, FieldManager: "modelbox-eru"})
		return err
	}
}

func updateSpec(dry []string) do {
	return func(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		_, err := c.Update(ctx, changed(k, obj), metav1.UpdateOptions{DryRun: dry})
		return err
	}
}

func remove(dry []string) do {
	return func(ctx context.Context, _ kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		return c.Delete(ctx, obj.GetName(), metav1.DeleteOptions{DryRun: dry})
	}
}

func apply(ctx context.Context, _ kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
	_, err := c.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: "test", Force: true})
	return err
}

func patchSpec(metadata map[string]any) do {
	return func(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		patch := map[string]any{"spec": k.changed}
		if metadata != nil {
			patch["metadata"] = metadata
		}
		data, err := json.Marshal(patch)
		if err != nil {
			return err
		}
		return patchOf(string(data))(ctx, k, c, obj)
	}
}

func patchOf(patch string, subresource ...string) do {
	return func(ctx context.Context, _ kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		_, err := c.Patch(ctx, obj.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresource...)
		return err
	}
}

func changed(k kind, obj *unstructured.Unstructured) *unstructured.Unstructured {
	maps.Copy(obj.Object["spec"].(map[string]any), k.changed)
	return obj
}

// applied returns what a user applies who has applied the object.
func applied(k kind, obj *unstructured.Unstructured) *unstructured.Unstructured {
	return k.object(obj.GetName(), obj.Object["spec"].(map[string]any))
}
