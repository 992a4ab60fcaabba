// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

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
