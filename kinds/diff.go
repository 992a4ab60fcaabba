// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Operation is an operation of a JSON patch (RFC 6902).
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// errUnfit is the error of a value that is not the object or the list that its type reads it as: a
// null, for instance.
var errUnfit = errors.New("a value has another type than its defaults")

// Diff returns the operations that make of an object, as it was sent, one with its defaults. Both
// specs are what Kind.Spec returns, before and after: what a client has set is equal in both, in
// whatever notation, and never sent back. Go's structs cannot tell an object that is absent from one
// that is empty, so an object that the defaults need, and that was not sent, is added first.
//
// It returns an error, and nothing should be sent, if a default is in what is neither an object nor a
// list: the error of the schema is better than that of an impossible patch.
func Diff(sent []byte, before, after map[string]any) ([]Operation, error) {
	return diff(nil, "", sent, map[string]any{"spec": before}, map[string]any{"spec": after})
}

func diff(to []Operation, at string, sent json.RawMessage, before, after any) ([]Operation, error) {
	was, wasObject := before.(map[string]any)
	now, isObject := after.(map[string]any)
	list, _ := before.([]any)
	next, _ := after.([]any)
	switch {
	case isEqual(before, after):
		return to, nil
	case wasObject && isObject:
		return diffObjects(to, at, sent, was, now)
	case len(list) > 0 && len(list) == len(next) && !isScalar(list[0]):
		return diffLists(to, at, sent, list, next)
	case after == nil:
		return append(to, Operation{Op: "remove", Path: at}), nil
	}
	return append(to, Operation{"add", at, after}), nil
}

func diffObjects(to []Operation, at string, sent json.RawMessage, before, after map[string]any) (_ []Operation, err error) {
	var fields map[string]json.RawMessage
	if sent == nil {
		to = append(to, Operation{"add", at, map[string]any{}})
	} else if json.Unmarshal(sent, &fields) != nil || fields == nil {
		return nil, errUnfit
	}
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if to, err = diff(to, at+"/"+escapes.Replace(name), fields[name], before[name], after[name]); err != nil {
			return nil, err
		}
	}
	return to, nil
}

func diffLists(to []Operation, at string, sent json.RawMessage, before, after []any) (_ []Operation, err error) {
	var items []json.RawMessage
	if json.Unmarshal(sent, &items) != nil || len(items) != len(before) {
		return nil, errUnfit
	}
	for i := range before {
		if to, err = diff(to, at+"/"+strconv.Itoa(i), items[i], before[i], after[i]); err != nil {
			return nil, err
		}
	}
	return to, nil
}

func isScalar(v any) bool {
	_, isObject := v.(map[string]any)
	return !isObject
}

// escapes are those of a name in a JSON pointer (RFC 6901).
var escapes = strings.NewReplacer("~", "~0", "/", "~1")
