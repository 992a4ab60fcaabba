// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/kinds"
)

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// replaceSpec replaces the spec of the version of a child that was read, and returns the response.
func (w Writer) replaceSpec(ctx context.Context, owner *Owner, desired, live client.Object) (client.Object, error) {
	spec, err := replacement(desired, live)
	if err != nil {
		return nil, err
	}
	patch, err := json.Marshal([]operation{
		{Op: "test", Path: "/metadata/resourceVersion", Value: live.GetResourceVersion()},
		{Op: "replace", Path: "/spec", Value: spec},
	})
	if err != nil {
		return nil, err
	}
	replaced := live.DeepCopyObject().(client.Object)
	return replaced, w.Client.Patch(ctx, replaced, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(FieldManager), owner.Limit)
}

// replacement returns the desired spec with what belongs to users and other controllers in a live
// child, where the desired one leaves it unset: the number of replicas, a paused rollout, and the
// time of a restart.
func replacement(desired, live client.Object) (map[string]any, error) {
	content, err := kinds.Content(desired)
	if err != nil {
		return nil, err
	}
	old, err := kinds.Content(live)
	if err != nil {
		return nil, err
	}
	for _, path := range [][]string{
		{"spec", "replicas"}, {"spec", "paused"}, {"spec", "template", "metadata", "annotations", api.AnnotationRestartedAt},
	} {
		value, has, _ := unstructured.NestedFieldNoCopy(old, path...)
		if _, set, _ := unstructured.NestedFieldNoCopy(content, path...); has && !set {
			if err := unstructured.SetNestedField(content, value, path...); err != nil {
				return nil, err
			}
		}
	}
	spec, _ := content["spec"].(map[string]any)
	return spec, nil
}

// isInvalid reports whether the API server itself has found an object to be invalid. A policy or a
// webhook that answers in the same way has not: its causes have no field, or its message begins
// with words that the API server puts there (k8s.io/apiserver/pkg/admission/plugin/webhook/errors).
func isInvalid(err error) bool {
	if !apierrors.IsInvalid(err) || strings.Contains(err.Error(), "admission webhook ") {
		return false
	}
	var response apierrors.APIStatus
	if !errors.As(err, &response) || response.Status().Details == nil {
		return true
	}
	for _, cause := range response.Status().Details.Causes {
		if cause.Field == "" {
			return false
		}
	}
	return true
}
