// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

// Set sets *field to value and records the operation. path is the field's JSON
// pointer (RFC 6901) in the whole object, such as /spec/ports/0/name. The value
// is marshalled once, as it is now; a later change of what it points to is not
// seen.
//
// The operation is an "add", which in an object also replaces (RFC 6902, 4.1), so
// a default that is derived again is written in the same way.
func Set[T any](ops *Ops, path string, field *T, value T) {
	*field = value
	if ops != nil {
		ops.add(path, field)
	}
}

// SetEncoded is Set for a value whose JSON is known beforehand. encoded must be what
// value marshals to.
func SetEncoded[T any](ops *Ops, path string, field *T, value T, encoded string) {
	*field = value
	if ops != nil {
		ops.addEncoded(path, encoded)
	}
}

// Unset sets *field to its zero value and records the removal of path. The
// field must have been set: RFC 6902 refuses to remove what is not there, and a
// refused operation refuses the whole patch.
func Unset[T any](ops *Ops, path string, field *T) {
	*field = *new(T)
	if ops != nil {
		ops.remove(path)
	}
}
