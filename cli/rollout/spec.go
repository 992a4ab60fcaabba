// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
)

// Apply returns a copy of an object with the changed fields of its spec. resourceType becomes
// the preset whose resources they are, and custom for others. An error is that of the rules.
func Apply(ctx context.Context, kind *kinds.Kind, obj *unstructured.Unstructured, spec map[string]any) (*unstructured.Unstructured, error) {
	changed := obj.DeepCopy()
	for field, value := range spec {
		set(changed, field, value)
	}
	_, resources := spec["resources"]
	if !resources || kind != kinds.ModelBox() {
		return changed, valid(ctx, kind, changed)
	}
	var err error
	for _, preset := range []modelv1.ResourceType{
		typeOf(obj), modelv1.ResourceTypeSmall, modelv1.ResourceTypeMedium, modelv1.ResourceTypeLarge, modelv1.ResourceTypeCustom,
	} {
		set(changed, "resourceType", string(preset))
		if err = valid(ctx, kind, changed); err == nil {
			return changed, nil
		}
	}
	return nil, err
}

func typeOf(obj *unstructured.Unstructured) modelv1.ResourceType {
	text, _, _ := unstructured.NestedString(obj.Object, "spec", "resourceType") // The schema says that it is a string.
	return modelv1.ResourceType(text)
}

func set(obj *unstructured.Unstructured, field string, value any) {
	spec, _ := obj.Object["spec"].(map[string]any)
	if value == nil {
		delete(spec, field)
		return
	}
	spec[field] = value
}

// valid returns the error of an object by the rules of admission.
func valid(ctx context.Context, kind *kinds.Kind, obj *unstructured.Unstructured) error {
	clean := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": obj.GetName()}, "spec": obj.Object["spec"]}}
	clean.SetGroupVersionKind(kind.GVK)
	body, err := json.Marshal(clean.Object)
	if err != nil {
		return err
	}
	resp, err := create.Dry(ctx, kind, create.Request{Body: body, Namespace: metav1.NamespaceDefault, Validation: metav1.FieldValidationIgnore})
	if err == nil && resp.Err != nil {
		err = fmt.Errorf("the revision would be refused today: %s", causes(resp.Err))
	}
	return err
}

func causes(err *apierrors.StatusError) string {
	if err.ErrStatus.Details == nil || len(err.ErrStatus.Details.Causes) == 0 {
		return err.ErrStatus.Message
	}
	cause := err.ErrStatus.Details.Causes[0]
	return cause.Field + ": " + cause.Message
}
