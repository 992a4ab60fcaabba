// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/modelbox-operator/modelbox-operator/webhook/patch/raw"
	"github.com/modelbox-operator/modelbox-operator/webhook/quantity"
	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
)

// decode reads an object with regard to case, as the API server does. Decoding is
// most of what an admission costs, and the decoder that is to be encoding/json/v2
// takes a third of the time and half of the allocations. What it refuses (a member that
// is there twice, text that is not UTF-8, a wrong type) is given to the API server's
// own decoder, which has the last word and names the field.
func decode[T any](object []byte) (*T, error) {
	if errs := quantity.Check(object, reflect.TypeFor[T](), nil); len(errs) > 0 {
		return nil, &fieldErrors{errs}
	}
	obj := new(T)
	if json.Unmarshal(object, obj) == nil {
		return obj, nil
	}
	obj = new(T)
	if err := kjson.UnmarshalCaseSensitivePreserveInts(object, obj); err != nil {
		return nil, fmt.Errorf("decoding the object: %w", err)
	}
	return obj, nil
}

// fieldErrors are errors with their paths, of an object that must not be decoded.
type fieldErrors struct{ list field.ErrorList }

func (e *fieldErrors) Error() string { return rules.First(e.list).ToAggregate().Error() }

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
