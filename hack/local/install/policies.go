// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	policyKinds = []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
	errNoPolicy = errors.New("there is no ValidatingAdmissionPolicy to install")
)

// Policies applies the ValidatingAdmissionPolicies and their bindings among objects, with
// forced ownership of their fields. It fails if there is none. The API server needs a
// moment until they are in effect.
func Policies(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	policies := OfKind(objects, policyKinds...)
	if len(policies) == 0 {
		return errNoPolicy
	}
	for _, policy := range policies {
		if err := apply(ctx, c, policy); err != nil {
			return err
		}
	}
	return nil
}

// Policies creates copies of the ValidatingAdmissionPolicies and their bindings among objects,
// as Own describes. It fails if there is none.
func (r *Run) Policies(ctx context.Context, objects []*unstructured.Unstructured) error {
	own, err := r.Own(OfKind(objects, policyKinds...))
	if err != nil {
		return err
	}
	if len(own) == 0 {
		return errNoPolicy
	}
	return r.Create(ctx, own)
}
