// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
)

// In an update of an object without managedFields, deploymentName is derived again if it is
// the default of the stored object.
func TestDefaultWithoutManagedFields(t *testing.T) {
	for _, test := range []struct {
		name                   string
		oldName, oldAlias      string
		sentName, alias, wants string
	}{
		{"the alias changes", "a", "a", "a", "b", "b"},
		{"the alias is removed", "a", "a", "a", "", "web"},
		{"the alias is added", "web", "", "web", "b", "b"},
		{"the name was another one", "c", "", "c", "b", "c"},
		{"the name changes", "a", "a", "c", "a", "c"},
		{"both change", "a", "a", "c", "b", "c"},
		{"the name is removed", "a", "", "", "", "web"},
		{"the object was stored without admission", "", "a", "", "b", "b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			old := named("web", mtsrev1.EruSpec{DeploymentName: test.oldName, DeprecatedDeploymentName: test.oldAlias})
			obj := named("web", mtsrev1.EruSpec{DeploymentName: test.sentName, DeprecatedDeploymentName: test.alias})
			Default(obj, old, nil)
			if obj.Spec.DeploymentName != test.wants {
				t.Errorf("deploymentName is %q, want %q", obj.Spec.DeploymentName, test.wants)
			}
			if obj.Spec.DeprecatedDeploymentName != test.alias {
				t.Errorf("the alias became %q", obj.Spec.DeprecatedDeploymentName)
			}
		})
	}
}

// A name that is not the default of the stored object stays, whether or not a client owns it:
// another webhook may have set it.
func TestDefaultKeepsWhatItHasNotDerived(t *testing.T) {
	owned := []metav1.ManagedFieldsEntry{{
		Manager: "kubectl", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:deploymentname":{}}}`),
	}}
	obj := named("web", mtsrev1.EruSpec{DeploymentName: "other", DeprecatedDeploymentName: "a"})
	obj.ManagedFields = owned
	old := named("web", mtsrev1.EruSpec{DeploymentName: "other"})
	if Default(obj, old, nil); obj.Spec.DeploymentName != "other" {
		t.Errorf("deploymentName became %q", obj.Spec.DeploymentName)
	}
}

// Which Deployment an Eru means is the same with and without admission.
func TestDeploymentNameOrDefault(t *testing.T) {
	names := []string{"", "a", "b"}
	for _, name := range names {
		for _, alias := range names {
			obj := named("web", mtsrev1.EruSpec{DeploymentName: name, DeprecatedDeploymentName: alias})
			before := obj.DeploymentNameOrDefault()
			if Default(obj, nil, nil); obj.Spec.DeploymentName != before || obj.DeploymentNameOrDefault() != before {
				t.Errorf("%q and %q: the Deployment is %q, and with the defaults %q", name, alias, before, obj.Spec.DeploymentName)
			}
		}
	}
}
