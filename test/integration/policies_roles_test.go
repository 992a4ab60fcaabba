// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// virtualGroup is the API group of the delegated rights. It has no resources: its names
// are used in RBAC only.
const virtualGroup = "rights.modelbox-operator.github.io"

// A rule allows verbs on resources of a group.
func rule(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

func named(r rbacv1.PolicyRule, names ...string) rbacv1.PolicyRule {
	r.ResourceNames = names
	return r
}

var (
	every = []string{"*"}
	// kindsRole allows everything with the five kinds, also with their subresources.
	kindsRole = []rbacv1.PolicyRule{{APIGroups: groups(), Resources: every, Verbs: every}}
	// delegatedRole is what docs/security.md offers to platforms.
	delegatedRole = []rbacv1.PolicyRule{rule(virtualGroup, []string{"use"}, "modelboxes", "apps", "genericdaemons", "uniteddeployments", "erus")}
)

func groups() []string {
	var out []string
	for _, k := range kinds {
		out = append(out, k.resource.Group)
	}
	return out
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
		if err := env.Client.Create(ctx, binding(meta, user, name)); err != nil {
			return err
		}
	}
	return inEffect(ctx, user, last)
}

func binding(meta metav1.ObjectMeta, user, role string) client.Object {
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	if meta.Namespace == "" {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}
	}
	return &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}
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

// inEffect waits until the API server allows a request of a user. It has then received all
// objects that were created before the one that allows the request.
func inEffect(ctx context.Context, user string, request *authorizationv1.ResourceAttributes) error {
	if request == nil {
		return nil
	}
	return wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: request}}
		err := env.Client.Create(ctx, review)
		return review.Status.Allowed, err
	})
}

// as returns a client of a user. It impersonates the user with an administrator's
// credentials, so the API server authorizes and admits each request as this user's.
func as(user string) (dynamic.Interface, error) {
	cfg := rest.CopyConfig(env.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	return dynamic.NewForConfig(cfg)
}

// through returns a client that uses the credentials of an account to impersonate a user.
func through(account, user string) (dynamic.Interface, error) {
	cfg, err := env.User(account)
	if err != nil {
		return nil, err
	}
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: slices.Clone(serviceAccounts)}
	return dynamic.NewForConfig(cfg)
}

// serviceAccounts are groups of each service account.
var serviceAccounts = []string{"system:serviceaccounts", "system:authenticated"}

// clusterRole returns the rules of the first role in a file.
func clusterRole(t *testing.T, path string) []rbacv1.PolicyRule {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var role rbacv1.ClusterRole
	if err := yaml.NewYAMLOrJSONDecoder(file, 4096).Decode(&role); err != nil {
		t.Fatal(err)
	}
	return role.Rules
}
