// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import "sigs.k8s.io/controller-runtime/pkg/client"

// Manifest returns, as JSON, what the operator applies for a desired child. live is the child
// as it is stored, nil if there is none. It changes neither of them.
func Manifest(desired, live client.Object) ([]byte, error) {
	versioned := desired.DeepCopyObject().(client.Object)
	if err := setHash(versioned); err != nil {
		return nil, err
	}
	if live != nil {
		if generation, ok := live.GetAnnotations()[AnnotationGeneration]; ok {
			versioned.GetAnnotations()[AnnotationGeneration] = generation
		}
	}
	return (&applyConfiguration{desired: versioned}).MarshalJSON()
}
