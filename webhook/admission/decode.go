// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/modelbox-operator/modelbox-operator/kinds/lenient"
	"github.com/modelbox-operator/modelbox-operator/kinds/quantity"
)

// read decodes an object without what in it cannot be decoded, of which it returns
// the errors: one wrong value must not hide what else is wrong. The error is that
// nothing can be decoded, because the object is none.
func read[T any](object []byte) (*T, field.ErrorList, error) {
	if obj, err := decode[T](object); err == nil && !lenient.Fractions(object) {
		return obj, nil, nil
	}
	rest, errs, err := lenient.Strip(object, reflect.TypeFor[T](), nil, true)
	if err != nil {
		return nil, nil, fmt.Errorf("decoding the object: %w", err)
	}
	obj, err := decode[T](rest)
	return obj, errs, err
}

// decode reads an object with regard to case, as the API server does. Decoding is
// most of what an admission costs, and the decoder that is to be encoding/json/v2
// takes a third of the time and half of the allocations. What it refuses (a member that
// is there twice, text that is not UTF-8, a wrong type) is given to the API server's
// own decoder, which has the last word.
func decode[T any](object []byte) (*T, error) {
	if errs := quantity.Check(object, reflect.TypeFor[T](), nil); len(errs) > 0 {
		return nil, errs[0]
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
