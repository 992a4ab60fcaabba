// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lenient

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/modelbox-operator/modelbox-operator/kinds/quantity"
)

var intOrStringType = reflect.TypeFor[intstr.IntOrString]()

// describe returns what a value must be, and how to correct it if it lacks quotes. err is
// the decoder's.
func describe(value any, typ reflect.Type, err error) string {
	switch {
	case typ == quantityType && !isText(value):
		return "must be a string or a whole number" + quoted(value)
	case typ == intOrStringType && !isWhole(value):
		return "must be a string or a whole number" + quoted(value)
	case typ.Kind() == reflect.String && !quantity.DecodesItself(typ):
		return "must be of type " + typ.String() + ", not " + jsonType(value) + quoted(value)
	}
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return "must be of type " + mismatch.Type.String() + ", not " + mismatch.Value
	}
	return err.Error()
}

// quoted returns how to write a number, or true, where a string is expected: a frequent
// mistake in YAML.
func quoted(value any) string {
	switch value.(type) {
	case bool, int64, float64:
		return fmt.Sprintf(`: write it in quotes ("%v")`, value)
	}
	return ""
}

func isText(value any) bool {
	_, ok := value.(string)
	return ok
}

func isWhole(value any) bool {
	number, isFloat := value.(float64)
	_, isInt := value.(int64)
	return isInt || isFloat && number == math.Trunc(number)
}

func jsonType(value any) string {
	switch value.(type) {
	case bool:
		return "bool"
	case map[string]any:
		return "object"
	case []any:
		return "array"
	}
	return "number"
}
