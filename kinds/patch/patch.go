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
	"strconv"
	"strings"
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

var (
	escapes   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapes = strings.NewReplacer("~1", "/", "~0", "~")
)

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
// missing, each before the first operation below it.
//
// It returns an error, and the patch should not be sent, if an operation lies
// below something that is neither an object nor a list: a null, for instance, which
// a struct reads as empty.
func (o *Ops) Fit(doc []byte) error {
	var tree any
	if err := json.Unmarshal(doc, &tree); err != nil {
		return fmt.Errorf("decoding the object: %w", err)
	}
	var fitting []operation
	for _, op := range o.list {
		missing, err := apply(tree, op)
		if err != nil {
			return fmt.Errorf("setting %s: %w", op.Path, err)
		}
		fitting = append(append(fitting, missing...), op)
	}
	o.list = fitting
	return nil
}

// apply applies an operation to a decoded object, and returns the operations that add the
// objects which it needs, the outermost first.
func apply(tree any, op operation) (missing []operation, err error) {
	up, field := split(op.Path)
	holder, missing, err := holderAt(tree, up)
	if err != nil {
		return nil, err
	}
	object, ok := holder.(map[string]any)
	switch {
	case !ok: // An item of a list is set as a whole.
	case op.Op == "remove":
		delete(object, field)
	default:
		var value any
		err = json.Unmarshal(op.Value, &value)
		object[field] = value
	}
	return missing, err
}

// holderAt returns the object or the list at a pointer. It adds objects that are missing.
func holderAt(tree any, pointer string) (holder any, missing []operation, err error) {
	if pointer == "" {
		return tree, nil, nil
	}
	up, name := split(pointer)
	around, missing, err := holderAt(tree, up)
	if err != nil {
		return nil, nil, err
	}
	switch around := around.(type) {
	case map[string]any:
		if _, ok := around[name]; !ok {
			around[name] = map[string]any{}
			missing = append(missing, operation{"add", pointer, []byte("{}")})
		}
		holder = around[name]
	case []any:
		i, err := strconv.Atoi(name)
		if err != nil || i >= len(around) {
			return nil, nil, fmt.Errorf("%s is not in the list", pointer)
		}
		holder = around[i]
	}
	switch holder.(type) {
	case map[string]any, []any:
		return holder, missing, nil
	}
	return nil, nil, fmt.Errorf("%s is neither an object nor a list", pointer)
}

// split returns the pointer of the object or list that holds the value at a pointer, and the name
// of the value in it.
func split(pointer string) (holder, name string) {
	at := strings.LastIndexByte(pointer, '/')
	return pointer[:at], unescapes.Replace(pointer[at+1:])
}

// Unescape returns the name of a part of a JSON pointer.
func Unescape(part string) string { return unescapes.Replace(part) }
