// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var _ runtime.ApplyConfiguration = &applyConfiguration{}

func TestApplyConfigurationHasNoStatus(t *testing.T) {
	t.Parallel()
	for _, child := range children() {
		child.SetName("box")
		child.SetNamespace("default")
		c := &applyConfiguration{desired: child}
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]any
		if err := json.Unmarshal(data, &members); err != nil {
			t.Fatal(err)
		}
		if _, has := members["status"]; has || members["kind"] != kindOf(child) || members["spec"] == nil {
			t.Errorf("the apply configuration is %s", data)
		}
		got := []string{*c.GetAPIVersion(), *c.GetKind(), *c.GetNamespace(), *c.GetName()}
		want := []string{members["apiVersion"].(string), kindOf(child), "default", "box"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// The object in the response replaces the desired one: a field that the response does not
// have is not kept. Integers beyond 2^53 are exact.
func TestResponseReplacesTheConfiguration(t *testing.T) {
	t.Parallel()
	deployment := children()[0].(*appsv1.Deployment)
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "server:1", WorkingDir: "/"}}
	c := &applyConfiguration{desired: deployment}
	response := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"resourceVersion":"7","generation":9007199254740993},` +
		`"spec":{"template":{"spec":{"containers":[{"name":"main","image":"mirror/server:1"}]}}}}`
	if err := json.Unmarshal([]byte(response), c); err != nil {
		t.Fatal(err)
	}
	got := c.response.(*appsv1.Deployment)
	if diff := cmp.Diff([]corev1.Container{{Name: "main", Image: "mirror/server:1"}}, got.Spec.Template.Spec.Containers); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got.Generation != 9007199254740993 || *c.ResourceVersion != "7" || got.Kind != "Deployment" {
		t.Errorf("the response is %+v, its resource version %s", got.ObjectMeta, *c.ResourceVersion)
	}
}
