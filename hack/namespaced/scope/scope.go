// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scope limits the manifests of an install to some namespaces: there are Roles in each
// of them and no ClusterRole, admission is called only for objects there, and no cluster-scoped
// object has the name of one of another install.
package scope

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// controller is the name of the controller's Deployment, its service account and its policy.
const controller = "modelbox-controller"

// certificate is the name of the ClusterRole, and its binding, for the webhook configurations of
// an install without cert-manager. These are in no namespace, so no Role can allow to write them.
const certificate = "modelbox-controller-certificate"

// scope is what the functions for the single kinds need.
type scope struct {
	// own is the namespace of the operator.
	own        string
	namespaces []string
	// events are the rules of the controller's ClusterRole for events, which it needs in its own
	// namespace too: there it emits those about its lease.
	events []any
}

// Objects returns the objects of an install that is limited to namespaces. What installs share
// is not among them: CRDs, and the roles that are aggregated into Kubernetes' own.
func Objects(install []*unstructured.Unstructured, namespaces []string) ([]*unstructured.Unstructured, error) {
	s := scope{namespaces: namespaces}
	if err := s.read(install); err != nil {
		return nil, err
	}
	if err := s.validate(); err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, object := range install {
		limited, err := s.limit(object.DeepCopy())
		if err != nil {
			return nil, fmt.Errorf("limiting %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		out = append(out, limited...)
	}
	return out, nil
}

// read finds what is needed of other objects.
func (s *scope) read(install []*unstructured.Unstructured) error {
	for _, object := range install {
		if object.GetName() != controller {
			continue
		}
		switch object.GetKind() {
		case "ServiceAccount":
			s.own = object.GetNamespace()
		case "ClusterRole":
			s.events = rulesOf(object, "events.k8s.io")
		}
	}
	if s.own == "" || len(s.events) == 0 {
		return fmt.Errorf("the manifests have no service account %s, or no permissions on events in a ClusterRole of that name", controller)
	}
	return nil
}

// rulesOf returns the rules of a role for an API group.
func rulesOf(role *unstructured.Unstructured, group string) []any {
	rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
	return slices.DeleteFunc(rules, func(rule any) bool {
		groups, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "apiGroups")
		return !slices.Contains(groups, group)
	})
}

func (s *scope) validate() error {
	if len(s.namespaces) == 0 {
		return errors.New("there are no namespaces")
	}
	for i, name := range s.namespaces {
		switch problems := validation.IsDNS1123Label(name); {
		case len(problems) > 0:
			return fmt.Errorf("%q is not the name of a namespace: %s", name, strings.Join(problems, "; "))
		case slices.Contains(s.namespaces[:i], name):
			return fmt.Errorf("the namespace %q occurs twice", name)
		case name == s.own:
			return fmt.Errorf("the operator runs in namespace %q, so it cannot reconcile the objects there: "+
				"their pods could use its service accounts and its certificate's key", name)
		}
	}
	return nil
}

// limit returns the objects that take the place of one.
func (s *scope) limit(object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	one := []*unstructured.Unstructured{object}
	switch object.GetKind() {
	case "CustomResourceDefinition":
		return nil, nil
	case "ClusterRole", "ClusterRoleBinding":
		if isAggregated(object) {
			return nil, nil
		}
		if object.GetName() == certificate {
			return one, s.renameCertificate(object)
		}
		return s.inEachNamespace(object)
	case "Role":
		return one, s.addEvents(object)
	case "Deployment":
		return one, s.addFlag(object)
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		s.rename(object)
		return one, s.selectWebhooks(object)
	case "ValidatingAdmissionPolicy":
		s.rename(object)
	case "ValidatingAdmissionPolicyBinding":
		return one, s.bind(object)
	}
	return one, nil
}

func isAggregated(object *unstructured.Unstructured) bool {
	for label := range object.GetLabels() {
		if strings.HasPrefix(label, "rbac.authorization.k8s.io/aggregate-to-") {
			return true
		}
	}
	return false
}

// inEachNamespace returns a Role for a ClusterRole, or a RoleBinding for its binding, in each
// namespace.
func (s *scope) inEachNamespace(object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	object.SetKind(strings.TrimPrefix(object.GetKind(), "Cluster"))
	// Roles of two installs, in the same namespace by mistake, must not replace each other.
	s.rename(object)
	if object.GetKind() == "RoleBinding" {
		for field, value := range map[string]string{"kind": "Role", "name": object.GetName()} {
			if err := unstructured.SetNestedField(object.Object, value, "roleRef", field); err != nil {
				return nil, err
			}
		}
	}
	var out []*unstructured.Unstructured
	for _, namespace := range s.namespaces {
		limited := object.DeepCopy()
		limited.SetNamespace(namespace)
		out = append(out, limited)
	}
	return out, nil
}

// rename gives an object that is not in the operator's namespace a name of this install.
func (s *scope) rename(object *unstructured.Unstructured) {
	object.SetName(object.GetName() + "-" + s.own)
}

// renameCertificate gives the ClusterRole, or its binding, a name of this install, and the names
// that the webhook configurations have in it.
func (s *scope) renameCertificate(object *unstructured.Unstructured) error {
	s.rename(object)
	if object.GetKind() == "ClusterRoleBinding" {
		return unstructured.SetNestedField(object.Object, object.GetName(), "roleRef", "name")
	}
	rules, _, err := unstructured.NestedSlice(object.Object, "rules")
	if err != nil {
		return err
	}
	for _, rule := range rules {
		names, _, err := unstructured.NestedStringSlice(rule.(map[string]any), "resourceNames")
		if err != nil {
			return err
		}
		for i := range names {
			names[i] += "-" + s.own
		}
		if err := unstructured.SetNestedStringSlice(rule.(map[string]any), names, "resourceNames"); err != nil {
			return err
		}
	}
	return unstructured.SetNestedSlice(object.Object, rules, "rules")
}

func (s *scope) addEvents(role *unstructured.Unstructured) error {
	if role.GetName() != controller {
		return nil
	}
	rules, _, err := unstructured.NestedSlice(role.Object, "rules")
	if err != nil {
		return err
	}
	return unstructured.SetNestedSlice(role.Object, append(rules, s.events...), "rules")
}

func (s *scope) addFlag(deployment *unstructured.Unstructured) error {
	if deployment.GetName() != controller {
		return nil
	}
	path := []string{"spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(deployment.Object, path...)
	if err != nil || len(containers) == 0 {
		return fmt.Errorf("it has no containers: %w", err)
	}
	container := containers[0].(map[string]any)
	args, _, err := unstructured.NestedStringSlice(container, "args")
	if err != nil {
		return err
	}
	args = append(args, "--namespaces="+strings.Join(s.namespaces, ","))
	if err := unstructured.SetNestedStringSlice(container, args, "args"); err != nil {
		return err
	}
	return unstructured.SetNestedSlice(deployment.Object, containers, path...)
}

func (s *scope) selectWebhooks(configuration *unstructured.Unstructured) error {
	webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil {
		return err
	}
	for _, webhook := range webhooks {
		if err := s.selectNamespaces(webhook.(map[string]any)); err != nil {
			return err
		}
	}
	return unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks")
}

// bind limits the binding of a policy to the namespaces. That of the controller's own policy
// stays as it is: it bounds what the controller may write anywhere.
func (s *scope) bind(binding *unstructured.Unstructured) error {
	policy, _, err := unstructured.NestedString(binding.Object, "spec", "policyName")
	if err != nil {
		return err
	}
	s.rename(binding)
	if err := unstructured.SetNestedField(binding.Object, policy+"-"+s.own, "spec", "policyName"); err != nil {
		return err
	}
	if policy == controller {
		return nil
	}
	return s.selectNamespaces(binding.Object, "spec", "matchResources")
}

// selectNamespaces adds a requirement to the namespaceSelector at a path.
func (s *scope) selectNamespaces(object map[string]any, path ...string) error {
	path = append(path, "namespaceSelector", "matchExpressions")
	expressions, _, err := unstructured.NestedSlice(object, path...)
	if err != nil {
		return err
	}
	var values []any
	for _, namespace := range s.namespaces {
		values = append(values, namespace)
	}
	expressions = append(expressions, map[string]any{"key": "kubernetes.io/metadata.name", "operator": "In", "values": values})
	return unstructured.SetNestedSlice(object, expressions, path...)
}
