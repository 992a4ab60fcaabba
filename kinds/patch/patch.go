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
	"slices"
	"strconv"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/kinds/patch/raw"
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

var escapes = strings.NewReplacer("~", "~0", "/", "~1")

// At returns the JSON pointer of a part of a list's item: At("/spec/ports", 0, "/name")
// is /spec/ports/0/name, and with an empty rest it is the item itself.
func At(list string, index int, rest string) string {
	return list + "/" + strconv.Itoa(index) + rest
}

// Key returns the JSON pointer of an entry of a map, or of a field with an uncommon
// name: Key("/metadata/annotations", "example.com/a") is
// /metadata/annotations/example.com~1a.
func Key(parent, key string) string {
	return parent + "/" + escapes.Replace(key)
}

// Fit makes the patch applicable to doc, the object as it was sent. Go's
// structs cannot tell an object that is absent from one that is empty, so a
// default below /spec is recorded for an object with no spec as well; RFC 6902
// refuses to add below what is not there. Fit adds the empty objects that are
// missing, before everything else.
//
// It returns an error, and the patch should not be sent, if an operation lies
// below something that is neither an object nor a list: a null, for instance, which
// a struct reads as empty. doc must be valid JSON.
func (o *Ops) Fit(doc []byte) error {
	var missing []string
	checked := ""
	for i, op := range o.list {
		up := parent(op.Path)
		if up == checked || o.setBefore(i, up) {
			continue
		}
		var err error
		if missing, err = absent(doc, up, missing); err != nil {
			return fmt.Errorf("setting %s: %w", op.Path, err)
		}
		checked = up
	}
	first := make([]operation, len(missing))
	for i, path := range missing {
		first[i] = operation{"add", path, []byte("{}")}
	}
	o.list = append(first, o.list...)
	return nil
}

// setBefore reports whether one of the first n operations set pointer, or an object
// that holds it, as a whole.
func (o *Ops) setBefore(n int, pointer string) bool {
	return slices.ContainsFunc(o.list[:n], func(op operation) bool {
		rest, ok := strings.CutPrefix(pointer, op.Path)
		return ok && (rest == "" || rest[0] == '/')
	})
}

// absent appends to missing, outermost first, the objects of the path of pointer that
// doc lacks.
func absent(doc []byte, pointer string, missing []string) ([]string, error) {
	if slices.Contains(missing, pointer) {
		return missing, nil
	}
	value, ok := raw.Find(doc, pointer)
	if ok {
		if value[0] != '{' && value[0] != '[' {
			return nil, fmt.Errorf("%s is %.32s, which has no fields", pointer, value)
		}
		return missing, nil
	}
	up := parent(pointer)
	if holder, ok := raw.Find(doc, up); ok && holder[0] == '[' {
		return nil, fmt.Errorf("%s is not in the list", pointer)
	}
	missing, err := absent(doc, up, missing)
	return append(missing, pointer), err
}

// parent returns the pointer of the object or list that holds pointer, "" for a field of
// the document.
func parent(pointer string) string {
	return pointer[:max(strings.LastIndexByte(pointer, '/'), 0)]
}
