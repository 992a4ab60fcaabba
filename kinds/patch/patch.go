// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package patch records the defaults that are set in an object, as operations of a JSON
// patch (RFC 6902), so that an admission response carries the defaults and nothing
// else: a field that a user set is never sent back, so it cannot be rewritten.
//
// A default is one line,
//
//	patch.Set(ops, "/spec/replicas", &spec.Replicas, new(int32(1)))
//
// and the same line runs where no patch is needed: a nil *Ops records nothing.
package patch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
)

// Ops is a list of operations, in the order in which they were recorded. The zero value is
// ready for use; a nil *Ops records nothing. It is for one goroutine at a time.
type Ops struct {
	list []operation
	err  error
}

type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// Set sets *field to value and records the operation. path is the field's JSON
// pointer (RFC 6901) in the whole object, such as /spec/ports/0/name. The value
// is marshalled once, as it is now; a later change of what it points to is not
// seen.
//
// The operation is an "add", which in an object also replaces (RFC 6902, 4.1), so
// a default that is derived again is written in the same way.
func Set[T any](ops *Ops, path string, field *T, value T) {
	*field = value
	if ops == nil {
		return
	}
	text, err := marshal(value)
	if err != nil {
		ops.err = cmp.Or(ops.err, fmt.Errorf("marshalling the value of %s: %w", path, err))
		return
	}
	ops.list = append(ops.list, operation{"add", path, text})
}

// Unset sets *field to its zero value and records the removal of path. The
// field must have been set: RFC 6902 refuses to remove what is not there, and a
// refused operation refuses the whole patch.
func Unset[T any](ops *Ops, path string, field *T) {
	*field = *new(T)
	if ops != nil {
		ops.list = append(ops.list, operation{Op: "remove", Path: path})
	}
}

// JSON returns the operations as a JSON patch (RFC 6902), nil if there are none.
func (o *Ops) JSON() []byte {
	if o.Len() == 0 {
		return nil
	}
	text, _ := marshal(o.list) // Its values are marshalled already.
	return text
}

// Len returns the number of operations.
func (o *Ops) Len() int {
	if o == nil {
		return 0
	}
	return len(o.list)
}

// Err returns the first error of marshalling a value. That operation is missing
// from the list, so the list should not be sent.
func (o *Ops) Err() error {
	if o == nil {
		return nil
	}
	return o.err
}

// marshal is json.Marshal without the escapes that HTML needs.
func marshal(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}
