// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// takeNoValues removes what a strategic merge does not take as a value. Directives, such as $patch,
// are errors: a map of strings may have any key, so the types alone do not refuse them. Nulls would
// delete what the operator generated: in a pod template they mean "not set". In lists they are
// errors, and are built as an empty value, if it can be.
func takeNoValues(path *field.Path, node any) (errs field.ErrorList) {
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			switch {
			case strings.HasPrefix(key, "$"):
				errs = append(errs, rules.MarkUnbuildable(field.Forbidden(path.Child(key), "directives of a strategic merge are not supported; remove it"))...)
				delete(node, key)
			case value == nil:
				delete(node, key)
			case rules.HasParts(value):
				errs = append(errs, takeNoValues(path.Child(key), value)...)
			}
		}
	case []any:
		for i, value := range node {
			if value == nil {
				errs = append(errs, field.Required(path.Index(i), "an item may not be null; remove it"))
			} else if rules.HasParts(value) {
				errs = append(errs, takeNoValues(path.Index(i), value)...)
			}
		}
	}
	return errs
}
