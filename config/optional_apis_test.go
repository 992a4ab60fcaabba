// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/modelbox-operator/modelbox-operator/kinds/children"
)

func resourceOf(block *children.Block) schema.GroupResource {
	plural, _ := meta.UnsafeGuessKindToResource(block.Kind)
	return plural.GroupResource()
}

// Each child of a block has a row in the policies: who may have it made, and that the controller may make it.
func TestEachBlockIsInThePolicies(t *testing.T) {
	objects := install(t)
	requester := find[*admissionregistrationv1.ValidatingAdmissionPolicy](t, objects, "modelbox-requester")
	controller := find[*admissionregistrationv1.ValidatingAdmissionPolicy](t, objects, "modelbox-controller")
	variables := map[string]string{}
	for _, v := range controller.Spec.Variables {
		variables[v.Name] = v.Expression
	}
	for _, block := range children.Blocks {
		resource := resourceOf(block)
		asked := false
		for _, validation := range requester.Spec.Validations {
			top, _, _ := strings.Cut(block.Field, ".")
			asked = asked || strings.Contains(validation.Expression, "variables.spec."+top) &&
				strings.Contains(validation.Expression, fmt.Sprintf("authorizer.group('%s').resource('%s')", resource.Group, resource.Resource))
		}
		if !asked {
			t.Errorf("config/policies/requester.yaml has no validation for %s, the child of spec.%s", resource, block.Field)
		}
		for _, variable := range []string{"owners", "changes"} {
			if !strings.Contains(variables[variable], "'"+resource.String()+"': ") {
				t.Errorf("config/policies/controller.yaml: %s has no row for %s, the child of spec.%s", variable, resource, block.Field)
			}
		}
	}
}

// The install gives the controller the permissions for the children of Kubernetes' own kinds, and a component those
// for the kinds of one provider.
func TestPermissionsForBlocks(t *testing.T) {
	components := map[string]string{"gateway.networking.k8s.io": "gateway-api", "monitoring.coreos.com": "prometheus-operator", "keda.sh": "keda"}
	verbs := []string{"get", "list", "watch", "create", "patch", "delete"}
	objects := install(t)
	for _, block := range children.Blocks {
		resource := resourceOf(block)
		for _, kind := range []string{"modelbox", "app"} {
			shipped := find[*rbacv1.ClusterRole](t, objects, controllerName+"-"+kind).Rules
			if shippedToo := may(shipped, resource.Group, resource.Resource, verbs...); shippedToo != (block.Provider == "") {
				t.Errorf("the install's permissions of %s for %s: %t", kind, resource, shippedToo)
			}
		}
		if block.Provider == "" {
			continue
		}
		component := components[resource.Group]
		role := find[*rbacv1.ClusterRole](t, kustomization(t, overlays[component]+"\n"), controllerName+"-"+component)
		if !may(role.Rules, resource.Group, resource.Resource, verbs...) {
			t.Errorf("the component %s does not permit %v of %s", component, verbs, resource)
		}
	}
}
