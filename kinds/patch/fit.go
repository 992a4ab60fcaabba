// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"fmt"
	"slices"

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
	for i, path := range o.paths {
		up := parent(path)
		if up == checked || o.setBefore(i, up) {
			continue
		}
		var err error
		if missing, err = absent(doc, up, missing); err != nil {
			return fmt.Errorf("setting %s: %w", path, err)
		}
		checked = up
	}
	if len(missing) > 0 {
		o.makeFirst(missing)
	}
	return nil
}

// setBefore reports whether one of the first n operations set pointer, or an object
// that holds it, as a whole.
func (o *Ops) setBefore(n int, pointer string) bool {
	return slices.ContainsFunc(o.paths[:n], func(path string) bool { return within(pointer, path) })
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
			return nil, fmt.Errorf("%s is %s, which has no fields", pointer, abridged(value))
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

// abridged returns a scalar, short enough for a sentence.
func abridged(value []byte) string {
	const most = 32
	if len(value) > most {
		return string(value[:most]) + "..."
	}
	return string(value)
}
