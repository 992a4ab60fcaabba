// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// virtualGroup is the API group of the delegated permissions. It has no resources: its names
// are used in RBAC only.
const virtualGroup = "rights.modelbox-operator.github.io"

// account is a user of the table.
type account struct {
	// Roles are those in the user's namespace, and Elsewhere those in another one.
	Roles, Elsewhere []string
	// Annotations are those of the Namespace, without the group.
	Annotations map[string]string
	// Frozen is whether the Namespace is frozen before the requests.
	Frozen bool
	// As is the name of the user, by default that of the namespace.
	As string
	// Impersonated is whether another user, who may only impersonate, sends the requests.
	Impersonated bool
}

// user creates a user of the table, with a namespace.
func (tb *table) user(t *testing.T, name string) tenant {
	t.Helper()
	a, annotations := tb.Users[name], map[string]string{}
	for name, value := range a.Annotations {
		annotations[virtualGroup+"/"+name] = value
	}
	c := user(t, name, annotations, a.As, tb.rolesOf(t, a.Roles)...)
	if len(a.Elsewhere) > 0 {
		other := unique(name)
		if err := newNamespace(t.Context(), other, nil); err != nil {
			t.Fatal(err)
		}
		if err := bind(t.Context(), other, c.namespace, tb.rolesOf(t, a.Elsewhere)...); err != nil {
			t.Fatal(err)
		}
	}
	if a.Frozen {
		newFreezable(t, c)
	}
	if a.Impersonated {
		c.Interface = impersonated(t, a.As)
	}
	return c
}

// impersonated returns a client of a user who may only impersonate, as a GitOps controller does.
func impersonated(t *testing.T, as string) dynamic.Interface {
	t.Helper()
	name := unique("gitops")
	impersonate := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"users", "groups", "serviceaccounts"}, Verbs: []string{"impersonate"}}
	if err := bind(t.Context(), "", name, []rbacv1.PolicyRule{impersonate}); err != nil {
		t.Fatal(err)
	}
	cfg, err := env.User(name)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Impersonate = rest.ImpersonationConfig{UserName: as, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	c, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// rolesOf returns the roles with these names: of ClusterRoles, of lists of rules in the table, of the
// ClusterRoles in a file; or the rules themselves.
func (tb *table) rolesOf(t *testing.T, names []string) (out []any) {
	t.Helper()
	for _, name := range names {
		switch {
		case tb.Roles[name] != nil:
			var rules []rbacv1.PolicyRule
			for _, text := range tb.Roles[name] {
				rules = append(rules, ruleOf(text))
			}
			out = append(out, rules)
		case strings.HasSuffix(name, ".yaml"):
			data, err := os.ReadFile(filepath.Join(testenv.Root(), name))
			if err != nil {
				t.Fatal(err)
			}
			for document := range strings.SplitSeq(string(data), "\n---\n") {
				var role rbacv1.ClusterRole
				if err := yaml.Unmarshal([]byte(document), &role); err != nil {
					t.Fatal(err)
				}
				if role.Kind == "ClusterRole" {
					out = append(out, role.Rules)
				}
			}
		case strings.Contains(name, " "):
			out = append(out, []rbacv1.PolicyRule{ruleOf(name)})
		default:
			out = append(out, name)
		}
	}
	return out
}

// ruleOf reads a rule such as "apps patch deployments web".
func ruleOf(text string) rbacv1.PolicyRule {
	words := strings.Fields(text)
	list := func(i int) []string {
		if i >= len(words) {
			return nil
		}
		if words[i] == "core" {
			return []string{""}
		}
		return strings.Split(words[i], ",")
	}
	return rbacv1.PolicyRule{APIGroups: list(0), Verbs: list(1), Resources: list(2), ResourceNames: list(3)}
}

// aggregate does the work of kube-controller-manager, which does not run: the rules of
// view, edit and admin become those of the ClusterRoles that are aggregated to them. View
// itself is aggregated to edit, and edit to admin.
func aggregate(ctx context.Context) error {
	for _, name := range []string{"view", "edit", "admin"} {
		var parts rbacv1.ClusterRoleList
		if err := env.Client.List(ctx, &parts, client.MatchingLabels{"rbac.authorization.k8s.io/aggregate-to-" + name: "true"}); err != nil {
			return err
		}
		var role rbacv1.ClusterRole
		if err := env.Client.Get(ctx, client.ObjectKey{Name: name}, &role); err != nil {
			return err
		}
		role.Rules = nil
		for _, part := range parts.Items {
			role.Rules = append(role.Rules, part.Rules...)
		}
		if err := env.Client.Update(ctx, &role); err != nil {
			return err
		}
	}
	return nil
}

// bind gives a user roles in a namespace, each the name of a ClusterRole or a list of
// rules, and waits until they are in effect. In the namespace "" the user gets them
// everywhere.
func bind(ctx context.Context, namespace, user string, roles ...any) error {
	var last *authorizationv1.ResourceAttributes
	for i, role := range roles {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%d", strings.ReplaceAll(user, ":", "-"), i)}
		name, isName := role.(string)
		if isName {
			last = &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "get", Resource: "configmaps"}
		} else {
			rules := role.([]rbacv1.PolicyRule)
			name = meta.Name + "-in-" + namespace
			if err := env.Client.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}); err != nil {
				return err
			}
			if len(rules) > 0 {
				last = attributesOf(namespace, rules[len(rules)-1])
			}
		}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
		subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
		var binding client.Object = &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}
		if namespace == "" {
			binding = &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}
		}
		if err := env.Client.Create(ctx, binding); err != nil {
			return err
		}
	}
	if last == nil {
		return nil
	}
	// The API server that allows the last one has received all objects before it.
	return wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: last}}
		err := env.Client.Create(ctx, review)
		return review.Status.Allowed, err
	})
}

// attributesOf returns a request that a rule allows.
func attributesOf(namespace string, rule rbacv1.PolicyRule) *authorizationv1.ResourceAttributes {
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	out := &authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: subresource,
	}
	if len(rule.ResourceNames) > 0 {
		out.Name = rule.ResourceNames[0]
	}
	return out
}

// as returns a client of a user. It impersonates the user with an administrator's
// credentials, so the API server authorizes and admits each request as this user's.
func as(user string) (dynamic.Interface, error) {
	cfg := rest.CopyConfig(env.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	return dynamic.NewForConfig(cfg)
}

// admin returns a client of an administrator.
func admin(t *testing.T) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// tenant is a client of a user who has the name of its namespace.
type tenant struct {
	dynamic.Interface
	namespace string
}

// user creates a namespace, with a name that begins with the given one, and a user with roles there, who has
// the name of the namespace if no other is given.
func user(t *testing.T, name string, annotations map[string]string, who string, roles ...any) tenant {
	t.Helper()
	namespace := unique(name)
	if err := newNamespace(t.Context(), namespace, annotations); err != nil {
		t.Fatal(err)
	}
	who = cmp.Or(who, namespace)
	if err := bind(t.Context(), namespace, who, roles...); err != nil {
		t.Fatal(err)
	}
	c, err := as(who)
	if err != nil {
		t.Fatal(err)
	}
	return tenant{c, namespace}
}
