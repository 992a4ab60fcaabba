// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// wrong returns what is wrong with obj. An update is answerable for what it
// changes only: what is wrong with the object as it is stored, perhaps since
// before a rule existed, must not keep its labels or its image from being
// changed (KEP-4008 does the same for schemas). The old object is decoded only if
// there is something to compare.
func (j *judge[T, P]) wrong(obj *T, r *request) field.ErrorList {
	errs := j.Validate(obj)
	if len(errs) == 0 {
		return nil
	}
	// Decoded anew: the one that Default was handed is not to be changed.
	old := j.old(r)
	if old == nil {
		return errs
	}
	j.Default(old, nil, nil)
	return added(errs, j.Validate(old))
}

// fault is what makes two errors the same: type, value and detail, and the field,
// but not where in a list it stands, since an item put in front moves all others. Of
// an error about a size, the value is no part of it.
type fault struct{ field, body string }

var index = regexp.MustCompile(`\[\d+\]`)

// faultOf returns the fault of an error, and the size that it is about, 0 if none.
func faultOf(err *field.Error) (fault, int) {
	f := fault{field: index.ReplaceAllString(err.Field, "[]")}
	size, ok := err.BadValue.(int)
	if ok && (err.Type == field.ErrorTypeTooLong || err.Type == field.ErrorTypeTooMany) {
		f.body = string(err.Type) + err.Detail
		return f, size
	}
	f.body = err.ErrorBody()
	return f, 0
}

// added returns the errors that are not in old, as multisets: a second error
// like one that was there is new, and so is one about a larger size.
func added(errs, old field.ErrorList) field.ErrorList {
	known := make(map[fault][]int, len(old)) // The sizes, smallest first.
	for _, err := range old {
		f, size := faultOf(err)
		at, _ := slices.BinarySearch(known[f], size)
		known[f] = slices.Insert(known[f], at, size)
	}
	var rest field.ErrorList
	for _, err := range errs {
		f, size := faultOf(err)
		if at, _ := slices.BinarySearch(known[f], size); at < len(known[f]) {
			known[f] = slices.Delete(known[f], at, at+1)
			continue
		}
		rest = append(rest, err)
	}
	return rest
}
