// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type measure struct {
	variables, items, members, quantities, deepest int
	errs                                           field.ErrorList
}

// The names of the lists that are long in a large pod, of the maps whose values are quantities,
// and of the other fields that are quantities: in all types of a pod and in our own.
var (
	longLists  = []string{"env", "envs", "command", "args"}
	amountMaps = []string{"limits", "requests", "overhead"}
	amounts    = []string{"sizeLimit", "divisor", "sharedMemory", "storage"}
)

// place is where a value is: the name of its field, how many objects and lists it is in, and
// whether it is a part of an environment variable.
type place struct {
	key      string
	depth    int
	variable bool
}

func (m *measure) value(path *field.Path, value any, at place) {
	if m.deepest = max(m.deepest, at.depth+1); at.depth >= MaxDepth {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		m.object(path, value, at)
	case []any:
		m.list(path, value, at)
	}
}

func (m *measure) object(path *field.Path, value map[string]any, at place) {
	if !at.variable {
		m.members += len(value)
	}
	for key, member := range value {
		switch {
		case slices.Contains(amountMaps, at.key):
			m.amount(path.Key(key), key, member)
		case slices.Contains(amounts, key):
			m.amount(path.Child(key), "", member)
		}
		if HasParts(member) {
			m.value(path.Child(key), member, place{key, at.depth + 1, at.variable})
		}
	}
}

// HasParts reports whether a value is an object or a list. A path for each value that is not would
// take more memory than the value.
func HasParts(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

func (m *measure) list(path *field.Path, value []any, at place) {
	long := slices.Contains(longLists, at.key)
	if long {
		m.variables += len(value)
	} else {
		m.items += len(value)
	}
	for i, item := range value {
		if HasParts(item) {
			m.value(path.Index(i), item, place{"", at.depth + 1, at.variable || long})
		}
	}
}

// costly reports whether a quantity takes long to parse, or the name of a resource of huge pages,
// which has one: 1e999999999 would be a number of a billion digits.
func costly(text string) bool {
	_, exponent, _ := strings.Cut(strings.ReplaceAll(text, "E", "e"), "e")
	return len(text) > 64 || len(strings.TrimLeft(exponent, "+-")) > 2
}

func (m *measure) amount(path *field.Path, name string, value any) {
	m.quantities++
	text, ok := value.(string)
	if number, isFloat := value.(float64); isFloat {
		text, ok = strconv.FormatFloat(number, 'g', -1, 64), true
	}
	if ok && costly(text) {
		m.errs = append(m.errs, MarkUnbuildable(field.Invalid(path, text, "must be a quantity of at most 64 characters with an exponent from -99 to 99"))...)
	}
	if size, huge := strings.CutPrefix(name, corev1.ResourceHugePagesPrefix); huge && costly(size) {
		m.errs = append(m.errs, MarkUnbuildable(field.Invalid(path, name, "must have a page size with an exponent from -99 to 99"))...)
	}
}

// ParseQuantity is resource.ParseQuantity for text that a client wrote where no schema bounds it.
func ParseQuantity(text string) (resource.Quantity, error) {
	if costly(text) {
		return resource.Quantity{}, resource.ErrFormatWrong
	}
	return resource.ParseQuantity(text)
}
