// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Permission is one verb on one resource.
type Permission struct {
	// Namespace is the namespace of the permission, or empty for all namespaces.
	Namespace string
	Group     string
	// Resource is the resource as RBAC names it, with its subresource:
	// "modelboxes/status".
	Resource string
	Verb     string
}

// String returns a short form such as "patch modelboxes/status of model.github.com".
func (r Permission) String() string {
	text := r.Verb + " " + r.Resource
	if r.Group != "" {
		text += " of " + r.Group
	}
	if r.Namespace != "" {
		text += " in " + r.Namespace
	}
	return text
}

// Allows reports whether a request needs this permission.
func (r Permission) Allows(q Request) bool {
	return r.Verb == q.Verb && r.Group == q.Group && r.Resource == q.path() && (r.Namespace == "" || r.Namespace == q.Namespace)
}

// Permissions returns the single permissions of the selected roles in a manifest of the
// repository. It returns an error for rules with wildcards, names of objects, or URLs.
func Permissions(path string, selected func(*rbacv1.ClusterRole) bool) ([]Permission, error) {
	file, err := os.Open(filepath.Join(Root(), path))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var all []Permission
	for documents := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		// A Role has the same fields as a ClusterRole.
		var role rbacv1.ClusterRole
		if err := documents.Decode(&role); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		if !selected(&role) {
			continue
		}
		permissions, err := permissionsOf(&role)
		if err != nil {
			return nil, fmt.Errorf("reading %s %q in %s: %w", role.Kind, role.Name, path, err)
		}
		for _, permission := range permissions { // Several roles have some of them.
			if !slices.Contains(all, permission) {
				all = append(all, permission)
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no permissions were found in %s", path)
	}
	return all, nil
}

// Every selects every role.
func Every(*rbacv1.ClusterRole) bool { return true }

func permissionsOf(role *rbacv1.ClusterRole) ([]Permission, error) {
	var permissions []Permission
	for _, rule := range role.Rules {
		plain := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs)
		if len(rule.ResourceNames)+len(rule.NonResourceURLs) > 0 || strings.Contains(strings.Join(plain, ""), "*") {
			return nil, fmt.Errorf("this rule has wildcards, resource names or URLs: %v", rule)
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					permissions = append(permissions, Permission{role.Namespace, group, resource, verb})
				}
			}
		}
	}
	return permissions, nil
}

// Compare compares permissions with the requests of a user who has them. It returns the permissions
// that no request needed, and the requests that needed another permission.
func Compare(permissions []Permission, requests []Request) (unused []Permission, beyond []Request) {
	for _, permission := range permissions {
		if !slices.ContainsFunc(requests, permission.Allows) {
			unused = append(unused, permission)
		}
	}
	for _, request := range requests {
		allows := func(permission Permission) bool { return permission.Allows(request) }
		// Discovery, which has no resource, is allowed for all users.
		if request.Resource != "" && !slices.ContainsFunc(permissions, allows) {
			beyond = append(beyond, request)
		}
	}
	return unused, beyond
}

// RefusedError is the error of a request for which a user has no permission.
type RefusedError struct {
	Request Request
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("refused: %s of group %q in namespace %q", e.Request, e.Request.Group, e.Request.Namespace)
}

// Refused returns a *RefusedError for the first request of a user that was refused, or
// nil.
func (e *Env) Refused(user string) error {
	requests, err := e.Requests(user)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(requests, Request.Refused); i >= 0 {
		return &RefusedError{requests[i]}
	}
	return nil
}

// UntilRefused calls do, and cancels its context as soon as a request of a user is
// refused. The error is then a *RefusedError.
func (e *Env) UntilRefused(ctx context.Context, user string, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var refused error
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		defer cancel()
		_ = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
			refused = e.Refused(user)
			return refused != nil, nil
		})
	}()
	err := do(ctx)
	cancel()
	<-watched
	return cmp.Or(refused, err)
}

// Grant gives a user additional permissions and waits until they are in effect. revoke, which
// is never nil, removes them again.
func (e *Env) Grant(ctx context.Context, user string, permissions []Permission) (revoke func() error, err error) {
	var made []client.Object
	create := func(obj client.Object) error {
		if err := e.Client.Create(ctx, obj); err != nil {
			return fmt.Errorf("granting permissions to %q: %w", user, err)
		}
		made = append(made, obj)
		return nil
	}
	revoke = func() error {
		var errs []error
		for _, obj := range made {
			errs = append(errs, e.Client.Delete(context.Background(), obj))
		}
		return errors.Join(errs...)
	}
	byNamespace := map[string][]Permission{}
	for _, permission := range permissions {
		byNamespace[permission.Namespace] = append(byNamespace[permission.Namespace], permission)
	}
	for namespace, permissions := range byNamespace {
		if err := bind(create, user, namespace, rules(permissions)); err != nil {
			return revoke, err
		}
		// All permissions of a namespace are in one object.
		if err := e.inEffect(ctx, user, permissions[0]); err != nil {
			return revoke, fmt.Errorf("waiting for the permissions of %q: %w", user, err)
		}
	}
	return revoke, nil
}

// bind creates a role and its binding to a user.
func bind(create func(client.Object) error, user, namespace string, rules []rbacv1.PolicyRule) error {
	meta := metav1.ObjectMeta{Namespace: namespace, GenerateName: user + "-"}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	if namespace == "" {
		role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}
		if err := create(role); err != nil {
			return err
		}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}
		return create(&rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref})
	}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: rules}
	if err := create(role); err != nil {
		return err
	}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}
	return create(&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref})
}

func rules(permissions []Permission) []rbacv1.PolicyRule {
	out := make([]rbacv1.PolicyRule, 0, len(permissions))
	for _, permission := range permissions {
		out = append(out, rbacv1.PolicyRule{
			APIGroups: []string{permission.Group}, Resources: []string{permission.Resource}, Verbs: []string{permission.Verb},
		})
	}
	return out
}

// inEffect waits until the API server's authorizer allows a permission of a user.
func (e *Env) inEffect(ctx context.Context, user string, permission Permission) error {
	resource, subresource, _ := strings.Cut(permission.Resource, "/")
	return wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: cmp.Or(permission.Namespace, metav1.NamespaceDefault),
				Group:     permission.Group, Resource: resource, Subresource: subresource, Verb: permission.Verb,
			},
		}}
		err := e.Client.Create(ctx, review)
		return review.Status.Allowed, err
	})
}
