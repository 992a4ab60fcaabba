// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package quantity

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// MaxExponent is the largest decimal exponent of a quantity, with either sign.
	MaxExponent = 99
	// MaxLength is the maximum length of a quantity, in bytes.
	MaxLength = 64
)

// Parse parses a quantity, and refuses one that is expensive to compute with.
func Parse(text string) (resource.Quantity, error) {
	if detail := excess(text); detail != "" {
		return resource.Quantity{}, fmt.Errorf("the quantity %.64q %s", text, detail)
	}
	return resource.ParseQuantity(text)
}

// Check returns an error for each quantity in data, also in the name of a resource, that
// is too long or has too large an exponent. typ is the type that data will be decoded
// into, which defines the fields that are quantities. path is the path of data. Data
// without such a quantity is read once, and not decoded.
func Check(data []byte, typ reflect.Type, path *field.Path) field.ErrorList {
	if !suspicious(data) {
		return nil
	}
	c := check{in: jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
	// An error means invalid JSON, which the decoder reports.
	_ = c.value(typ, path)
	return c.errs
}

type check struct {
	in   *jsontext.Decoder
	errs field.ErrorList
}

var quantityType = reflect.TypeFor[resource.Quantity]()

// value reads one value that will be decoded into a typ.
func (c *check) value(typ reflect.Type, path *field.Path) error {
	for typ != nil && typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	kind := c.in.PeekKind()
	switch {
	case typ == quantityType && (kind == '"' || kind == '0'):
		return c.quantity(path)
	case typ == nil || shapeOf(typ).decodesItself:
		return c.in.SkipValue()
	}
	return c.parts(kind, typ, path)
}

// parts reads the members of an object, or the items of a list.
func (c *check) parts(kind jsontext.Kind, typ reflect.Type, path *field.Path) error {
	switch of := typ.Kind(); {
	case kind == '{' && (of == reflect.Struct || of == reflect.Map):
		return c.object(typ, path)
	case kind == '[' && (of == reflect.Slice || of == reflect.Array):
		return c.list(typ.Elem(), path)
	}
	return c.in.SkipValue()
}

func (c *check) quantity(path *field.Path) error {
	token, err := c.in.ReadToken()
	if err != nil {
		return err
	}
	if detail := excess(strings.TrimSpace(token.String())); detail != "" {
		c.errs = append(c.errs, field.Invalid(path, fmt.Sprintf("%.64s", token.String()), detail))
	}
	return nil
}

func (c *check) object(typ reflect.Type, path *field.Path) error {
	if _, err := c.in.ReadToken(); err != nil {
		return err
	}
	for c.in.PeekKind() != '}' {
		token, err := c.in.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		if err := c.member(typ, name, path); err != nil {
			return err
		}
	}
	_, err := c.in.ReadToken()
	return err
}

func (c *check) member(typ reflect.Type, name string, path *field.Path) error {
	if typ.Kind() == reflect.Map {
		if detail := PageSize(typ, name); detail != "" {
			c.errs = append(c.errs, field.Invalid(path.Key(fmt.Sprintf("%.64s", name)), fmt.Sprintf("%.64s", name), detail))
		}
		return c.value(typ.Elem(), path.Key(name))
	}
	of := foldedFieldType(typ, name)
	if of == nil {
		return c.in.SkipValue()
	}
	return c.value(of, path.Child(name))
}

func (c *check) list(item reflect.Type, path *field.Path) error {
	if _, err := c.in.ReadToken(); err != nil {
		return err
	}
	for i := 0; c.in.PeekKind() != ']'; i++ {
		if err := c.value(item, path.Index(i)); err != nil {
			return err
		}
	}
	_, err := c.in.ReadToken()
	return err
}

// PageSize returns the reason why a key of a map of typ is expensive, "" if it is not.
// The name of a resource such as hugepages-2Mi contains a quantity, which Kubernetes' own
// validation computes with (IsHugePageResourceValueDivisible in
// k8s.io/kubernetes/pkg/apis/core/helper).
func PageSize(typ reflect.Type, key string) string {
	size, ok := strings.CutPrefix(key, corev1.ResourceHugePagesPrefix)
	if typ.Elem() != quantityType || !ok {
		return ""
	}
	return excess(size)
}

// excess returns the reason why a quantity is expensive, "" if it is not. Text that is no
// quantity is refused by its decoder.
func excess(text string) string {
	if len(text) > MaxLength {
		return fmt.Sprintf("must have at most %d characters", MaxLength)
	}
	at := strings.LastIndexAny(text, "eE")
	if at < 0 {
		return ""
	}
	digits := strings.TrimLeft(strings.TrimLeft(text[at+1:], "+-"), "0")
	if skip([]byte(digits), 0) > 2 && !strings.Contains(digits, ".") {
		return fmt.Sprintf("must have an exponent from -%d to %d", MaxExponent, MaxExponent)
	}
	return ""
}
