// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lenient

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/modelbox-operator/modelbox-operator/kinds/quantity"
)

// maxErrors is how many values are reported one by one, which is more than a response has.
// An error takes much more memory than a value.
const maxErrors = 100

// Strip returns data without the values that cannot be decoded into their Go type, typ
// being that of the whole, or that quantity.Check refuses; an item of a list becomes
// null, so that the others keep their index. For each there is an error of the type
// field.ErrorTypeTypeInvalid at its path, path being where data is; the errors are in
// the order of the names. Of many, the first are reported one by one, and one more
// error has their number. What has no field in Go is left as it is.
//
// With whole, a quantity without quotation marks must be a whole number, as the
// schemas say; Go itself reads any number.
//
// The error is that data is no JSON, or that the whole is of the wrong type.
func Strip(data []byte, typ reflect.Type, path *field.Path, whole bool) ([]byte, field.ErrorList, error) {
	var tree any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &tree); err != nil {
		return nil, nil, err
	}
	root := path
	if root == nil {
		root = field.NewPath("(root)")
	}
	s := search{whole: whole}
	if detail := s.unfit(tree, typ); detail != "" {
		return nil, nil, s.misfit(root, tree, detail)
	}
	s.fits(tree, typ, path)
	if s.found > maxErrors {
		s.errs = append(s.errs, field.TooMany(root, s.found, maxErrors))
	}
	rest, err := json.Marshal(tree)
	return rest, s.errs, err
}

type search struct {
	whole bool
	errs  field.ErrorList
	found int
}

// fits reports whether a value can be decoded into a typ. If not, it appends an error for
// it; of a value that fits, it removes the parts that do not, with an error for each.
func (s *search) fits(value any, typ reflect.Type, path *field.Path) bool {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if err := s.unfit(value, typ); err != "" {
		s.report(path, value, err)
		return false
	}
	switch value := value.(type) {
	case map[string]any:
		if !quantity.DecodesItself(typ) {
			s.members(value, typ, path)
		}
	case []any:
		if typ.Kind() == reflect.Slice && !quantity.DecodesItself(typ) {
			s.items(value, typ.Elem(), path)
		}
	}
	return true
}

func (s *search) members(object map[string]any, typ reflect.Type, path *field.Path) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		var member reflect.Type
		var at *field.Path
		switch typ.Kind() {
		case reflect.Map:
			member, at = typ.Elem(), path.Key(name)
			if detail := quantity.PageSize(typ, name); detail != "" {
				s.report(at, name, detail)
				delete(object, name)
				continue
			}
		case reflect.Struct:
			if member = quantity.FieldType(typ, name); member != nil {
				at = path.Child(name)
			}
		}
		if member != nil && !s.fits(object[name], member, at) {
			delete(object, name)
		}
	}
}

func (s *search) items(list []any, typ reflect.Type, path *field.Path) {
	for i := range list {
		if !s.fits(list[i], typ, path.Index(i)) {
			list[i] = nil
		}
	}
}

func (s *search) report(path *field.Path, value any, detail string) {
	if s.found++; s.found <= maxErrors {
		s.errs = append(s.errs, s.misfit(path, value, detail))
	}
}

func (s *search) misfit(path *field.Path, value any, detail string) *field.Error {
	switch v := value.(type) {
	case map[string]any, []any:
		value = field.OmitValueType{}
	case string:
		value = v[:min(len(v), quantity.MaxLength)]
	}
	return field.TypeInvalid(path, value, detail)
}

// unfit returns why a value, without its parts, cannot be decoded into a typ, "" if it
// can.
func (s *search) unfit(value any, typ reflect.Type) string {
	if typ == quantityType {
		return s.unfitQuantity(value)
	}
	if plain(value, typ) {
		return ""
	}
	if typ.Kind() == reflect.String && !quantity.DecodesItself(typ) {
		return describe(value, typ, nil) // Only text fits, and to try takes time.
	}
	if err := try(leaf(value, typ), typ); err != nil {
		return describe(value, typ, err)
	}
	return ""
}

func (s *search) unfitQuantity(value any) string {
	if _, isFloat := value.(float64); s.whole && isFloat && !isWhole(value) {
		return describe(value, quantityType, nil)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	if errs := quantity.Check(text, quantityType, nil); len(errs) > 0 {
		return errs[0].Detail
	}
	if err := try(empty(value), quantityType); err != nil {
		return describe(value, quantityType, err)
	}
	return ""
}

// plain reports whether a value is known to fit without decoding it, as most are.
func plain(value any, typ reflect.Type) bool {
	switch value.(type) {
	case nil:
		return true
	case string:
		return typ.Kind() == reflect.String && !quantity.DecodesItself(typ)
	case map[string]any:
		return (typ.Kind() == reflect.Struct || typ.Kind() == reflect.Map) && !quantity.DecodesItself(typ)
	case []any:
		return typ.Kind() == reflect.Slice && !quantity.DecodesItself(typ)
	}
	return false
}

// leaf returns the part of a value to decode as a trial: all of it, if its type decodes
// itself, and otherwise not its parts, which are tried one by one.
func leaf(value any, typ reflect.Type) any {
	if quantity.DecodesItself(typ) {
		return value
	}
	return empty(value)
}

// empty returns the value without its parts.
func empty(value any) any {
	switch value.(type) {
	case map[string]any:
		return map[string]any{}
	case []any:
		return []any{}
	}
	return value
}

// try decodes a value.
func try(value any, typ reflect.Type) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding the value: %w", err)
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(data, reflect.New(typ).Interface())
}

var quantityType = reflect.TypeFor[resource.Quantity]()
