// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
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

const hold = "example.com/hold"

// requests are all ways in which a user can read or write an object.
var requests = []struct {
	name   string
	before state
	do     do
}{
	{"get", stored, get()}, {"get the status", stored, get("status")}, {"get the scale", stored, get("scale")},
	{"list", stored, func(ctx context.Context, _ kind, c dynamic.ResourceInterface, _ *unstructured.Unstructured) error {
		_, err := c.List(ctx, metav1.ListOptions{})
		return err
	}},
	{"watch", stored, func(ctx context.Context, _ kind, c dynamic.ResourceInterface, _ *unstructured.Unstructured) error {
		watch, err := c.Watch(ctx, metav1.ListOptions{})
		if err == nil {
			watch.Stop()
		}
		return err
	}},
	{"create", absent, create(nil)}, {"create, as a dry run", absent, create(dryRun)},
	{"create with generateName", absent, func(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		obj.SetGenerateName(obj.GetName() + "-")
		obj.SetName("")
		return create(nil)(ctx, k, c, obj)
	}},
	{"create by apply", absent, apply},
	{"update the spec", stored, updateSpec(nil)}, {"update the spec, as a dry run", stored, updateSpec(dryRun)},
	{"merge patch of the spec", stored, patchSpec},
	{"JSON patch of the spec", stored, func(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
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
	{"apply another spec", stored, func(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		return apply(ctx, k, c, changed(k, k.object(obj.GetName(), k.spec)))
	}},
	{"apply the same spec", stored, func(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		return apply(ctx, k, c, k.object(obj.GetName(), k.spec))
	}},
	{"update without a change", stored, func(ctx context.Context, _ kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		_, err := c.Update(ctx, obj, metav1.UpdateOptions{})
		return err
	}},
	{"patch of a label", stored, patchOf(`{"metadata":{"labels":{"a":"b"}}}`)},
	{"patch of finalizers", stored, patchOf(`{"metadata":{"finalizers":["example.com/another"]}}`)},
	{"update the status", stored, func(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		// A change of the spec in this request is dropped by the API server.
		_, err := c.UpdateStatus(ctx, changed(k, obj), metav1.UpdateOptions{})
		return err
	}},
	{"patch of the status", stored, patchOf(`{"status":{"observedGeneration":1}}`, "status")},
	{"update the scale", stored, func(ctx context.Context, _ kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		scale := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": map[string]any{"replicas": int64(3)}}}
		scale.SetName(obj.GetName())
		scale.SetNamespace(obj.GetNamespace())
		_, err := c.Update(ctx, scale, metav1.UpdateOptions{}, "scale")
		return err
	}},
	{"patch of the scale", stored, patchOf(`{"spec":{"replicas":3}}`, "scale")},
	{"delete", stored, remove(nil)}, {"delete, as a dry run", stored, remove(dryRun)},
	{"delete a collection", stored, func(ctx context.Context, _ kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		return c.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=" + obj.GetName()})
	}},
	{"patch of the spec while it is being deleted", deleting, patchSpec},
	{"removal of the finalizer while it is being deleted", deleting, patchOf(`{"metadata":{"finalizers":null}}`)},
}

func get(subresource ...string) do {
	return func(ctx context.Context, _ kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		_, err := c.Get(ctx, obj.GetName(), metav1.GetOptions{}, subresource...)
		return err
	}
}

func create(dry []string) do {
	return func(ctx context.Context, _ kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		_, err := c.Create(ctx, obj, metav1.CreateOptions{DryRun: dry})
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

func patchSpec(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
	data, err := json.Marshal(map[string]any{"spec": k.changed})
	if err != nil {
		return err
	}
	return patchOf(string(data))(ctx, k, c, obj)
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

// role is a row of the matrix: a user, and what the API server must decide on its requests.
type role struct {
	name  string
	roles []any
	// gitops is whether a GitOps controller impersonates the user.
	gitops bool
	want   func(request string) outcome
}

func reads(request string) bool {
	return strings.HasPrefix(request, "get") || request == "list" || request == "watch"
}

// writes reports whether a request creates an object or changes its spec.
func writes(request string) bool {
	return strings.HasPrefix(request, "create") || strings.HasSuffix(request, "spec") && request != "apply the same spec" ||
		strings.HasPrefix(request, "update the spec")
}

func onlyReads(request string) outcome {
	if reads(request) {
		return allowed
	}
	return byRBAC
}

func everything(string) outcome { return allowed }

// allButStatus is what the aggregated roles allow.
func allButStatus(request string) outcome {
	if strings.HasSuffix(request, "the status") && !reads(request) {
		return byRBAC
	}
	return allowed
}

func noSpec(request string) outcome {
	if writes(request) {
		return byRequester
	}
	return allowed
}

var roles = []role{
	{"view", []any{"view"}, false, onlyReads},
	{"edit", []any{"edit"}, false, allButStatus},
	{"admin", []any{"admin"}, false, allButStatus},
	{"cluster-admin", []any{"cluster-admin"}, false, everything},
	{"only-the-kinds", []any{kindsRole}, false, noSpec},
	{"only-the-kinds-and-view", []any{"view", kindsRole}, false, noSpec},
	{"delegated", []any{kindsRole, delegatedRole}, false, everything},
	{"system:serviceaccount:gitops:edits", []any{"edit"}, true, allButStatus},
	{"system:serviceaccount:gitops:only-the-kinds", []any{kindsRole}, true, noSpec},
}

// client returns a client of the user. The account is that of the GitOps controller.
func (r role) client(account string) (dynamic.Interface, error) {
	if r.gitops {
		return through(account, r.name)
	}
	return as(r.name)
}

// Every request of every role for every kind.
func TestMatrix(t *testing.T) {
	t.Parallel()
	// A GitOps controller that impersonates needs this permission, and none of those of the users.
	impersonate := rule("", []string{"impersonate"}, "users", "groups", "serviceaccounts")
	account := unique("gitops")
	if err := bind(t.Context(), "", account, []rbacv1.PolicyRule{impersonate}); err != nil {
		t.Fatal(err)
	}
	for _, r := range roles {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			cells := compare(t, r, account)
			// Genericdaemons and Erus have no scale.
			if want := len(requests)*len(kinds) - 2*3; cells != want {
				t.Errorf("%d cells were compared, want %d", cells, want)
			}
		})
	}
}

// compare compares the requests of a role, and returns how many.
func compare(t *testing.T, r role, account string) (cells int) {
	namespace := unique("matrix-" + strings.ReplaceAll(r.name, ":", "-"))
	if err := newNamespace(t.Context(), namespace, map[string]string{virtualGroup + "/deployments": "web"}); err != nil {
		t.Fatal(err)
	}
	if err := bind(t.Context(), namespace, r.name, r.roles...); err != nil {
		t.Fatal(err)
	}
	user, err := r.client(account)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		for i, q := range requests {
			if strings.HasSuffix(q.name, "the scale") && !k.scale {
				continue
			}
			obj := k.object(fmt.Sprintf("cell-%d", i), k.spec)
			if q.before != absent {
				obj = store(t, k.in(admin(t), namespace), obj, q.before == deleting)
			}
			err := q.do(t.Context(), k, k.in(user, namespace), obj)
			if got, want := outcomeOf(err), r.want(q.name); got != want {
				t.Errorf("%s of a %s: %s, want %s (error %v)", q.name, k.name, got, want, err)
			}
			cells++
		}
	}
	return cells
}

// store creates an object as an administrator, with the field manager that the requests
// of users have, and deletes it if it is to be in deletion.
func store(t *testing.T, c dynamic.ResourceInterface, obj *unstructured.Unstructured, deleting bool) *unstructured.Unstructured {
	t.Helper()
	if deleting {
		obj.SetFinalizers([]string{hold})
	}
	stored, err := c.Apply(t.Context(), obj.GetName(), obj, metav1.ApplyOptions{FieldManager: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if deleting {
		if err := c.Delete(t.Context(), obj.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return stored
}
