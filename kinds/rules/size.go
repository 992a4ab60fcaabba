// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/kinds/patch/raw"
)

// The bounds of a spec, and of a pod template, as JSON. What is larger is neither decoded
// nor validated: an error takes a thousand times the memory of an empty item, and
// Kubernetes' own validation returns several for each.
const (
	// MaxBytes is the maximum length in bytes, without the spaces between values. No process
	// can be started with a longer variable (MAX_ARG_STRLEN of Linux).
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
	// MaxDepth is how many objects and lists may be in each other. A pod has fewer than 20.
	// The API server itself cannot read an object of 10,000.
	MaxDepth = 64
)

// small is a length in bytes up to which a value is within the bounds, but for that of the
// depth, which does not matter then.
const small = 2 * MaxItems

const wayOut = "move large values and long lists to a ConfigMap or a Secret, and refer to it in envFrom or mount it as a volume"

// SizeOf returns the error of a field whose value, as JSON, is above a bound.
func SizeOf(path *field.Path, value []byte) *field.Error {
	if len(value) <= small {
		return nil
	}
	return WithinSize(path, raw.Measure(value), raw.Size{})
}

// WithinSize returns the error of a field whose size is above a bound, nil if it is not.
// stored is the size of the stored value: what was stored before there was a bound may stay,
// but not grow.
func WithinSize(path *field.Path, size, stored raw.Size) *field.Error {
	for _, bound := range [...]struct {
		of                string
		now, before, most int
	}{
		{"bytes", size.Bytes, stored.Bytes, MaxBytes},
		{"levels of objects and lists", size.Depth, stored.Depth, MaxDepth},
		{"variables and words of commands", size.Variables, stored.Variables, MaxVariables},
		{"items of other lists", size.Items, stored.Items, MaxItems},
		{"fields and keys", size.Members, stored.Members, MaxMembers},
	} {
		if bound.now > max(bound.most, bound.before) {
			return tooLarge(path, bound.now, bound.most, bound.of)
		}
	}
	return nil
}

// tooLarge returns an error whose value is the size, so that ratcheting validation can tell
// an update that makes a stored field larger from one that does not.
func tooLarge(path *field.Path, size, most int, of string) *field.Error {
	err := field.TooLong(path, "", most)
	err.BadValue = size
	err.Detail = fmt.Sprintf("may not be more than %d %s; %s", most, of, wayOut)
	return err
}

// maxStored is the maximum length in bytes of an object that etcd stores, by default.
const maxStored = 3 << 19

// Oversize reports whether a size is above a bound, or above that of etcd for the bytes: what
// has only more bytes than MaxBytes can be decoded and validated at a cost in proportion.
func Oversize(size raw.Size) bool {
	return size.Bytes > maxStored || size.Variables > MaxVariables || size.Items > MaxItems ||
		size.Members > MaxMembers || size.Depth > MaxDepth
}
