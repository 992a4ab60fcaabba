// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// spec is the spec of an object.
type spec map[string]any

// kind is what the tests need of one of the five kinds: a valid spec, another value of one of its
// fields, and whether it has the subresource scale.
type kind struct {
	name          string
	resource      schema.GroupVersionResource
	spec, changed spec
	scale         bool
}

var (
	modelBox = kind{
		"ModelBox", schema.GroupVersionResource{Group: "model.github.com", Version: "v1", Resource: "modelboxes"},
		spec{"image": "nginx:1", "ports": []any{map[string]any{"port": int64(80)}}}, spec{"image": "nginx:2"}, true,
	}
	app = kind{
		"App", schema.GroupVersionResource{Group: "app.huolala.cn", Version: "v1", Resource: "apps"},
		spec{"image": "nginx:1", "ports": []any{map[string]any{"port": int64(80)}}}, spec{"image": "nginx:2"}, true,
	}
	genericdaemon = kind{
		"Genericdaemon", schema.GroupVersionResource{Group: "mydomain.com", Version: "v1beta1", Resource: "genericdaemons"},
		spec{"image": "syslog:1", "label": "logs"}, spec{"image": "syslog:2"}, false,
	}
	unitedDeployment = kind{
		"UnitedDeployment", schema.GroupVersionResource{Group: "extension.k8s.io", Version: "v1", Resource: "uniteddeployments"},
		spec{"deploymentName": "web", "replicas": int64(2)}, spec{"replicas": int64(0)}, true,
	}
	eru = kind{
		"Eru", schema.GroupVersionResource{Group: "mtsre.meitu.com", Version: "v1", Resource: "erus"},
		spec{"deploymentName": "web"}, spec{"enabled": true}, false,
	}
	kinds = []kind{modelBox, app, genericdaemon, unitedDeployment, eru}
)

func (k kind) in(c dynamic.Interface, namespace string) dynamic.ResourceInterface {
	return c.Resource(k.resource).Namespace(namespace)
}

func (k kind) object(name string, s spec) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": runtime.DeepCopyJSON(s)}}
	obj.SetGroupVersionKind(k.resource.GroupVersion().WithKind(k.name))
	obj.SetName(name)
	return obj
}

// parse decodes a spec in YAML, behind the name of its kind: "Eru {deploymentName: web}". Without
// the name it is a ModelBox.
func parse(t *testing.T, text string) (kind, spec) {
	t.Helper()
	of := modelBox
	for _, k := range kinds {
		if rest, ok := strings.CutPrefix(text, k.name+" "); ok {
			of, text = k, rest
		}
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	var out map[string]any
	// As the client does: integers become int64.
	if err := utiljson.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return of, out
}

var dryRun = []string{metav1.DryRunAll}

// outcome is the result of a request.
type outcome string

const (
	allowed     outcome = "allowed"
	byRBAC      outcome = "refused by RBAC"
	byRequester outcome = "refused by modelbox-requester"
	byDelegated outcome = "refused by modelbox-delegated"
	byFrozen    outcome = "refused by modelbox-frozen"
)

// outcomeOf returns the outcome of a request. An error of another type is an outcome that
// no test expects.
func outcomeOf(err error) outcome {
	if err == nil {
		return allowed
	}
	if !apierrors.IsForbidden(err) {
		return outcome(fmt.Sprintf("failed: %v", err))
	}
	for _, policy := range []string{"modelbox-requester", "modelbox-delegated", "modelbox-frozen"} {
		if strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"' with binding '"+policy+"' denied request: ") {
			return outcome("refused by " + policy)
		}
	}
	return byRBAC
}

// virtualGroup is the API group of the delegated permissions. It has no resources: its names
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
	// scalerRole allows the autoscaler by any metric, without which only the pods' own metrics may be used.
	scalerRole = []rbacv1.PolicyRule{rule("autoscaling", every, "horizontalpodautoscalers")}
	// optionalRole allows the children whose APIs a cluster may lack. edit does not.
	optionalRole = []rbacv1.PolicyRule{
		rule("gateway.networking.k8s.io", every, "httproutes"), rule("monitoring.coreos.com", every, "podmonitors"), rule("keda.sh", every, "scaledobjects"),
	}
)

func groups() (out []string) {
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

// through returns a client that uses the credentials of an account to impersonate a service account.
func through(account, user string) (dynamic.Interface, error) {
	cfg, err := env.User(account)
	if err != nil {
		return nil, err
	}
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
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

// user creates a namespace, with a name that begins with the given one, and a user with
// roles there.
func user(t *testing.T, name string, annotations map[string]string, roles ...any) tenant {
	t.Helper()
	namespace := unique(name)
	if err := newNamespace(t.Context(), namespace, annotations); err != nil {
		t.Fatal(err)
	}
	if err := bind(t.Context(), namespace, namespace, roles...); err != nil {
		t.Fatal(err)
	}
	c, err := as(namespace)
	if err != nil {
		t.Fatal(err)
	}
	return tenant{c, namespace}
}

// tried returns the outcome of a dry run of a create, and its error.
func tried(t *testing.T, c tenant, k kind, name string, s spec) (outcome, error) {
	t.Helper()
	_, err := k.in(c, c.namespace).Create(t.Context(), k.object(name, s), metav1.CreateOptions{DryRun: dryRun})
	return outcomeOf(err), err
}

// check compares the outcome of a dry run of a create, and a part of the message.
func check(t *testing.T, c tenant, text string, want outcome, message string) {
	t.Helper()
	k, s := parse(t, text)
	if got, err := tried(t, c, k, "a", s); got != want || want != allowed && !strings.Contains(err.Error(), message) {
		t.Errorf("%s: %.300s: %s, want %s with %q: %.500v", c.namespace, text, got, want, message, err)
	}
}
