// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"

	"github.com/modelbox-operator/modelbox-operator/webhook/patch/raw"
)

// decode reads an object as the API server does: with regard to case.
func decode[T any](object []byte) (*T, error) {
	obj := new(T)
	if err := json.UnmarshalCaseSensitivePreserveInts(object, obj); err != nil {
		return nil, fmt.Errorf("decoding the object: %w", err)
	}
	return obj, nil
}

// blank makes decode pass over parts of an object that nobody is going to look at.
// On an object that has been stored for a while they can be most of it.
func blank(object []byte, pointers ...string) {
	for _, pointer := range pointers {
		if part, ok := raw.Find(object, pointer); ok {
			raw.Blank(part)
		}
	}
}

// leaving says whether an object that cannot be decoded is being deleted.
func leaving(object []byte) bool {
	obj, err := decode[metav1.PartialObjectMetadata](object)
	return err == nil && obj.DeletionTimestamp != nil
}
