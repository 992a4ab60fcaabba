// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Policies applies the ValidatingAdmissionPolicies and their bindings among objects, with
// forced ownership of their fields. It fails if there is none. The API server needs a
// moment until they are in effect.
func Policies(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	policies := OfKind(objects, "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
	if len(policies) == 0 {
		return errors.New("there is no ValidatingAdmissionPolicy to install")
	}
	for _, policy := range policies {
		if err := apply(ctx, c, policy); err != nil {
			return err
		}
	}
	return nil
}
