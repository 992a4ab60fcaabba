// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/modelbox-operator/modelbox-operator/kinds"
)

func TestApplyConfigurationHasNoStatus(t *testing.T) {
	t.Parallel()
	for _, child := range childTypes() {
		child.SetName("box")
		child.SetNamespace("default")
		data, err := kinds.ApplyConfiguration(child)
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]any
		if err := json.Unmarshal(data, &members); err != nil {
			t.Fatal(err)
		}
		if _, has := members["status"]; has || members["kind"] != kinds.KindOf(child) || members["spec"] == nil {
			t.Errorf("the apply configuration is %s", data)
		}
	}
}

// The object in the response replaces the desired one: a field that the response does not
// have is not kept. Integers beyond 2^53 are exact.
func TestResponseReplacesTheConfiguration(t *testing.T) {
	t.Parallel()
	deployment := childTypes()[0].(*appsv1.Deployment)
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "server:1", WorkingDir: "/"}}
	response := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"resourceVersion":"7","generation":9007199254740993},` +
		`"spec":{"template":{"spec":{"containers":[{"name":"main","image":"mirror/server:1"}]}}}}`
	c := interceptor.NewClient(nil, interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, into client.Object, patch client.Patch, _ ...client.PatchOption) error {
			if patch.Type() != types.ApplyPatchType || client.ObjectKeyFromObject(into) != client.ObjectKeyFromObject(deployment) {
				t.Errorf("a patch of the type %s, of %s", patch.Type(), client.ObjectKeyFromObject(into))
			}
			return json.Unmarshal([]byte(response), into)
		},
	})
	answer, err := Writer{Access: Access{Client: c}}.serverSideApply(t.Context(), &Owner{}, deployment, deployment.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	got := answer.(*appsv1.Deployment)
	if diff := cmp.Diff([]corev1.Container{{Name: "main", Image: "mirror/server:1"}}, got.Spec.Template.Spec.Containers); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got.Generation != 9007199254740993 || got.ResourceVersion != "7" {
		t.Errorf("the response is %+v", got.ObjectMeta)
	}
}
