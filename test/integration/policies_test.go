// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// outcome is the result of a request.
type outcome string

const (
	allowed     outcome = "allowed"
	byRBAC      outcome = "refused by RBAC"
	byRequester outcome = "refused by modelbox-requester"
	byDelegated outcome = "refused by modelbox-delegated"
	byFrozen    outcome = "refused by modelbox-frozen"
	bySchema    outcome = "refused by the schema"
)

// outcomeOf returns the outcome of a request. An error of another type is an outcome that
// no test expects.
func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return allowed
	case apierrors.IsInvalid(err):
		return bySchema
	case !apierrors.IsForbidden(err):
		return outcome(fmt.Sprintf("failed: %v", err))
	}
	for _, by := range []outcome{byRequester, byDelegated, byFrozen} {
		policy := strings.TrimPrefix(string(by), "refused by ")
		if strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"' with binding '"+policy+"' denied request: ") {
			return by
		}
	}
	return byRBAC
}

// row is a row of the table: the users by the outcome of their requests, the verbs, which are
// names of requests, and the objects. The name of a user counts before its groups, and a group that is
// allowed before another.
type row struct {
	Allowed, RBAC, Requester, Delegated, Frozen, Invalid []string
	// Verbs are by default a dry run of a create.
	Verbs []string
	// Objects are specs in YAML behind the name of a kind, or "pods", which are the three kinds that have
	// pods, or of a shape; by default a ModelBox. "every" are all kinds with a spec of each.
	Objects []string
	// Stored is the spec that an administrator has stored; by default that of the object. With it, the
	// object is what the request merges into the spec.
	Stored string
	// Metadata is merged into the object.
	Metadata map[string]any
	// Error is a part of the error of each request that is refused. NAMESPACE is that of the user.
	Error string
}

// wants returns the outcome for a user, by name or group; none if the row is not about the user.
func (r *row) wants(user string, groups map[string][]string) outcome {
	byOutcome := []struct {
		outcome
		names []string
	}{{allowed, r.Allowed}, {byRBAC, r.RBAC}, {byRequester, r.Requester}, {byDelegated, r.Delegated}, {byFrozen, r.Frozen}, {bySchema, r.Invalid}}
	for _, of := range byOutcome {
		if slices.Contains(of.names, user) {
			return of.outcome
		}
	}
	for _, of := range byOutcome {
		if slices.ContainsFunc(of.names, func(name string) bool { return slices.Contains(groups[name], user) }) {
			return of.outcome
		}
	}
	return ""
}

// table is testdata/policies.yaml.
type table struct {
	Roles  map[string][]string
	Users  map[string]account
	Groups map[string][]string
	Shapes map[string]string
	Rows   []row
}

func readTable(t *testing.T) *table {
	t.Helper()
	data, err := os.ReadFile("testdata/policies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out := &table{}
	if err := yaml.UnmarshalStrict(data, out); err != nil {
		t.Fatal(err)
	}
	for i := range out.Rows {
		r := &out.Rows[i]
		if len(r.Verbs) == 0 {
			r.Verbs = []string{"create"}
		}
		for _, verb := range r.Verbs {
			if requests[verb].do == nil {
				t.Errorf("row %d: there is no request %q", i, verb)
			}
		}
		for _, name := range slices.Concat(r.Allowed, r.RBAC, r.Requester, r.Delegated, r.Frozen, r.Invalid) {
			if _, ok := out.Users[name]; !ok && out.Groups[name] == nil {
				t.Errorf("row %d: there is no user or group %q", i, name)
			}
		}
	}
	return out
}

// parse returns the kinds, the name and the spec of an object of the table.
func (tb *table) parse(t *testing.T, text string) (of []kind, name string, s spec) {
	t.Helper()
	if text == "every" {
		return kinds, "a", nil
	}
	of, name = []kind{modelBox}, "a"
	if first, rest, _ := strings.Cut(text, " "); !strings.HasPrefix(text, "{") {
		first, given, _ := strings.Cut(first, "/")
		name = cmp.Or(given, name)
		if shape := tb.Shapes[first]; shape != "" {
			return of, name, decoded(t, strings.Replace(shape, "%s", rest, 1))
		}
		if of = podKinds; first != "pods" {
			of = []kind{find(t, first)}
		}
		text = rest
	}
	return of, name, decoded(t, text)
}

// cell is a request of one user for one object, and what it must result in.
type cell struct {
	// name is that of the request.
	name, what string
	kind       kind
	object     *unstructured.Unstructured
	want       outcome
	contains   string
}

// cells returns all requests of a user.
func (tb *table) cells(t *testing.T, user, namespace string) (out []cell) {
	t.Helper()
	for i, r := range tb.Rows {
		want := r.wants(user, tb.Groups)
		if want == "" {
			continue
		}
		for _, text := range r.Objects {
			of, name, s := tb.parse(t, text)
			for _, verb := range r.Verbs {
				for _, k := range of {
					if strings.HasSuffix(verb, " the scale") && !k.scale {
						continue
					}
					c := cell{name: verb, kind: k, want: want, what: fmt.Sprintf("row %d: %s of a %s: %.300s", i, verb, k.name, text)}
					if want != allowed {
						c.contains = strings.ReplaceAll(r.Error, "NAMESPACE", namespace)
					}
					before := s
					if requests[verb].before != absent {
						if name = fmt.Sprintf("cell-%d", len(out)); r.Stored != "" {
							_, _, before = tb.parse(t, r.Stored)
							c.kind.changed = s
						}
					}
					if before == nil {
						before = k.spec
					}
					c.object = k.object(name, before)
					maps.Copy(c.object.Object["metadata"].(map[string]any), runtime.DeepCopyJSON(r.Metadata))
					out = append(out, c)
				}
			}
		}
	}
	return out
}

// Every request of every user: testdata/policies.yaml.
func TestPolicies(t *testing.T) {
	t.Parallel()
	tb := readTable(t)
	for name := range tb.Users {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tb.run(t, name)
		})
	}
}

// run sends all requests of a user, after their objects have been stored.
func (tb *table) run(t *testing.T, name string) {
	t.Helper()
	c := tb.user(t, name)
	all := tb.cells(t, name, c.namespace)
	for i := range all {
		if before := requests[all[i].name].before; before != absent {
			all[i].object = store(t, all[i].kind.in(admin(t), c.namespace), all[i].object, before == deleting)
		}
	}
	if tb.Users[name].Frozen {
		setFrozen(t, c.namespace, true)
	}
	for i := range all {
		all[i].check(t, c)
	}
	if len(all) == 0 {
		t.Error("no row is about this user")
	}
}

func (c *cell) check(t *testing.T, of tenant) {
	t.Helper()
	err := requests[c.name].do(t.Context(), c.kind, c.kind.in(of, of.namespace), c.object)
	if got := outcomeOf(err); got != c.want || got != allowed && !strings.Contains(err.Error(), c.contains) {
		t.Errorf("%s\n%s, want %s with %q (%.500v)", c.what, got, c.want, c.contains, err)
	}
}

// store creates an object as an administrator, with the field manager that the requests
// of users have, and deletes it if it is to be in deletion.
func store(t *testing.T, c dynamic.ResourceInterface, obj *unstructured.Unstructured, deleting bool) *unstructured.Unstructured {
	t.Helper()
	if deleting {
		obj.SetFinalizers([]string{"example.com/hold"})
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

// check compares the outcome of a dry run of a create of an object of the table, and a part of the message.
func (tb *table) check(t *testing.T, c tenant, text string, want outcome, message string) {
	t.Helper()
	of, name, s := tb.parse(t, text)
	err := of[0].try(t, c, name, s)
	if got := outcomeOf(err); got != want || want != allowed && !strings.Contains(err.Error(), message) {
		t.Errorf("%s: %.300s: %s, want %s with %q: %.500v", c.namespace, text, got, want, message, err)
	}
}

// try returns the error of a dry run of a create.
func (k kind) try(t *testing.T, c tenant, name string, s spec) error {
	t.Helper()
	_, err := k.in(c, c.namespace).Create(t.Context(), k.object(name, s), metav1.CreateOptions{DryRun: dryRun})
	return err
}
