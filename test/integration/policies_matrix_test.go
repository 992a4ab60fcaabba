// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// A request of a user for one object.
type request struct {
	name string
	// stored is whether the object exists, and deleting whether it is being deleted.
	stored, deleting bool
	do               func(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error
}

const hold = "example.com/hold"

// requests are all ways in which a user can write an object.
var requests = []request{
	{"create", false, false, create(metav1.CreateOptions{})},
	{"create, as a dry run", false, false, create(metav1.CreateOptions{DryRun: dryRun})},
	{"create with generateName", false, false, func(ctx context.Context, _ kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		obj.SetGenerateName(obj.GetName() + "-")
		obj.SetName("")
		_, err := c.Create(ctx, obj, metav1.CreateOptions{})
		return err
	}},
	{"create by apply", false, false, apply},
	{"update the spec", true, false, func(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		_, err := c.Update(ctx, changed(k, obj), metav1.UpdateOptions{})
		return err
	}},
	{"update the spec, as a dry run", true, false, func(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		_, err := c.Update(ctx, changed(k, obj), metav1.UpdateOptions{DryRun: dryRun})
		return err
	}},
	{"merge patch of the spec", true, false, patchSpec},
	{"JSON patch of the spec", true, false, func(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
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
	{"apply another spec", true, false, func(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		return apply(ctx, k, c, changed(k, k.object(obj.GetName(), k.spec)))
	}},
	{"apply the same spec", true, false, func(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		return apply(ctx, k, c, k.object(obj.GetName(), k.spec))
	}},
	{"update without a change", true, false, func(ctx context.Context, _ kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		_, err := c.Update(ctx, obj, metav1.UpdateOptions{})
		return err
	}},
	{"patch of a label", true, false, patchOf(`{"metadata":{"labels":{"a":"b"}}}`)},
	{"patch of finalizers", true, false, patchOf(`{"metadata":{"finalizers":["example.com/another"]}}`)},
	{"update the status", true, false, func(ctx context.Context, k kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		// A change of the spec in this request is dropped by the API server.
		_, err := c.UpdateStatus(ctx, changed(k, obj), metav1.UpdateOptions{})
		return err
	}},
	{"patch of the status", true, false, patchOf(`{"status":{"observedGeneration":1}}`, "status")},
	{"patch of the scale", true, false, patchOf(`{"spec":{"replicas":3}}`, "scale")},
	{"delete", true, false, func(ctx context.Context, _ kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		return c.Delete(ctx, obj.GetName(), metav1.DeleteOptions{})
	}},
	{"delete, as a dry run", true, false, func(ctx context.Context, _ kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		return c.Delete(ctx, obj.GetName(), metav1.DeleteOptions{DryRun: dryRun})
	}},
	{"delete a collection", true, false, func(ctx context.Context, _ kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		return c.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=" + obj.GetName()})
	}},
	{"patch of the spec while it is being deleted", true, true, patchSpec},
	{"removal of the finalizer while it is being deleted", true, true, patchOf(`{"metadata":{"finalizers":null}}`)},
}

func create(options metav1.CreateOptions) func(context.Context, kind, dynamic.ResourceInterface, *unstructured.Unstructured) error {
	return func(ctx context.Context, _ kind, c dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
		_, err := c.Create(ctx, obj, options)
		return err
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

func patchOf(patch string, subresource ...string) func(context.Context, kind, dynamic.ResourceInterface, *unstructured.Unstructured) error {
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

// writes reports whether a request creates an object or changes its spec.
func writes(request string) bool {
	return strings.HasPrefix(request, "create") || strings.HasSuffix(request, "spec") && request != "apply the same spec" ||
		strings.HasPrefix(request, "update the spec")
}

func nothing(string) outcome { return byRBAC }

func everything(string) outcome { return allowed }

// allButStatus is what the aggregated roles allow.
func allButStatus(request string) outcome {
	if strings.HasSuffix(request, "the status") {
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
	{"view", []any{"view"}, false, nothing},
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
	// A GitOps controller that impersonates needs this right, and none of those of the users.
	impersonate := rule("", []string{"impersonate"}, "users", "groups", "serviceaccounts")
	account := unique("gitops")
	if err := bind(t.Context(), "", account, []rbacv1.PolicyRule{impersonate}); err != nil {
		t.Fatal(err)
	}
	cells := make(chan int, len(roles))
	t.Run("roles", func(t *testing.T) {
		for _, r := range roles {
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				cells <- row(t, r, account)
			})
		}
	})
	close(cells)
	total := 0
	for n := range cells {
		total += n
	}
	if want := len(roles) * (len(requests)*len(kinds) - 2); total != want {
		t.Errorf("%d cells were compared, want %d: each request of each role for each kind, but no scale of Genericdaemons and Erus", total, want)
	}
	t.Logf("%d cells: %d roles, %d requests, %d kinds", total, len(roles), len(requests), len(kinds))
}

// row compares the requests of a role, and returns how many.
func row(t *testing.T, r role, account string) int {
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
	admin, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	cells := 0
	for _, k := range kinds {
		for i, q := range requests {
			if strings.HasSuffix(q.name, "the scale") && !k.scale {
				continue
			}
			obj := k.object("cell-"+string(rune('a'+i)), k.spec)
			if q.stored {
				obj = store(t, k.in(admin, namespace), obj, q.deleting)
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
