// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// The bounds of a spec, and of a pod template, as JSON. What is larger is neither decoded into
// its type nor validated: an error takes a thousand times the memory of an empty item, and
// Kubernetes' own validation returns several for each.
const (
	// MaxBytes is the maximum length in bytes. No process can be started with a longer
	// variable (MAX_ARG_STRLEN of Linux).
	MaxBytes = 128 << 10
	// MaxVariables is the maximum number of environment variables, and of words of command
	// and args, of all containers together.
	MaxVariables = 3072
	// MaxItems is the maximum number of items of all other lists together: containers,
	// ports, volumes, mounts and so on.
	MaxItems = 512
	// MaxMembers is the maximum number of members of all objects and maps together, those
	// of variables aside.
	MaxMembers = 3072
	// MaxQuantities is the maximum number of quantities: CPU and memory of 128 containers, as
	// limits and as requests. Each is parsed and compared many times.
	MaxQuantities = 512
	// MaxDepth is how many objects and lists may be in each other. A pod has fewer than 20.
	MaxDepth = 64
)

const wayOut = "move large values and long lists to a ConfigMap or a Secret, and refer to it in envFrom or mount it as a volume"

// SpecSize returns the errors of a spec, or of another field, that would cost too much to decode
// into its type, or to validate. With one that is Unbuildable, the decoder itself would take
// minutes.
func SpecSize(path *field.Path, value []byte) field.ErrorList {
	if len(value) > MaxBytes {
		return field.ErrorList{tooLarge(path, len(value), MaxBytes, "bytes")}
	}
	var tree any
	duplicates, err := kjson.UnmarshalStrict(value, &tree)
	if err == nil && len(duplicates) > 0 {
		err = duplicates[0] // The API server sends none, and the first value would not be measured.
	}
	if err != nil {
		return MarkUnbuildable(field.Invalid(path, field.OmitValueType{}, err.Error()))
	}
	return Expensive(path, tree)
}

// Expensive is SpecSize for a value that is decoded already: it returns one error for a bound that
// the value exceeds, and one for each quantity that would take minutes to parse.
func Expensive(path *field.Path, value any) field.ErrorList {
	m := measure{}
	m.value(path, value, place{})
	for _, bound := range [...]struct {
		of        string
		now, most int
	}{
		{"levels of objects and lists", m.deepest, MaxDepth},
		{"environment variables and command arguments", m.variables, MaxVariables},
		{"items of other lists", m.items, MaxItems},
		{"fields and keys", m.members, MaxMembers},
		{"quantities", m.quantities, MaxQuantities},
	} {
		if bound.now > bound.most {
			return append(Sorted(m.errs), tooLarge(path, bound.now, bound.most, bound.of))
		}
	}
	return Sorted(m.errs)
}

// Sorted sorts errors by their paths, because maps have no order.
func Sorted(errs field.ErrorList) field.ErrorList {
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return errs
}

// tooLarge returns an error whose value is the size, so that ratcheting validation can tell
// an update that makes a stored field larger from one that does not.
func tooLarge(path *field.Path, size, most int, of string) *field.Error {
	err := field.TooLong(path, "", most)
	err.BadValue = size
	err.Detail = fmt.Sprintf("has %d %s; at most %d are allowed; %s", size, of, most, wayOut)
	return err
}
