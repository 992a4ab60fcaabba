// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/kinds/patch/raw"
)

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
