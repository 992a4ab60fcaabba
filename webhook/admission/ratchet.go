// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// fault is what makes two errors the same: type and value, and the field, but not where
// in a list it stands, since an item put in front moves all others. Beside a value that
// is wrong, the detail does not count: it can quote another field, and to correct that
// one must not make an error here that was there before look new. Of an error about a
// size, the value is no part of it.
type fault struct{ field, body string }

var index = regexp.MustCompile(`\[\d+\]`)

// faultOf returns the fault of an error, and the size that it is about, 0 if none.
func faultOf(err *field.Error) (fault, int) {
	f := fault{field: err.Field}
	if len(err.Field) <= maxText { // The rest of a longer path is a key, which has no index.
		f.field = index.ReplaceAllString(err.Field, "[]")
	}
	size, ok := err.BadValue.(int)
	if ok && (err.Type == field.ErrorTypeTooLong || err.Type == field.ErrorTypeTooMany) {
		f.body = string(err.Type) + err.Detail
		return f, size
	}
	f.body = (&field.Error{Type: err.Type, BadValue: err.BadValue, Detail: detail(err)}).ErrorBody()
	return f, 0
}

// detail returns an error's detail, unless its value already distinguishes it from
// other errors.
func detail(err *field.Error) string {
	switch err.BadValue.(type) {
	case nil, field.OmitValueType:
		return err.Detail
	}
	if err.Type == field.ErrorTypeInvalid || err.Type == field.ErrorTypeTypeInvalid {
		return ""
	}
	return err.Detail
}

// added returns the errors that are not in old, as multisets: a second error
// like one that was there is new, and so is one about a larger size.
func added(errs, old field.ErrorList) field.ErrorList {
	known := make(map[fault][]int, len(old)) // The sizes, smallest first.
	for _, err := range old {
		f, size := faultOf(err)
		known[f] = append(known[f], size)
	}
	for _, sizes := range known {
		slices.Sort(sizes)
	}
	var rest field.ErrorList
	for _, err := range errs {
		f, size := faultOf(err)
		if at := slices.IndexFunc(known[f], func(was int) bool { return was >= size }); at < 0 {
			rest = append(rest, err)
		} else {
			known[f] = slices.Delete(known[f], at, at+1)
		}
	}
	return rest
}
