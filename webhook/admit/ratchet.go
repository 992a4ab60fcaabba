// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"regexp"

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
// but not where in a list it stands, since an item put in front moves all others.
type fault struct{ field, body string }

var index = regexp.MustCompile(`\[\d+\]`)

func faultOf(err *field.Error) fault {
	return fault{field: index.ReplaceAllString(err.Field, "[]"), body: err.ErrorBody()}
}

// added returns the errors that are not in old, as multisets: a second error
// like one that was there is new.
func added(errs, old field.ErrorList) field.ErrorList {
	known := make(map[fault]int, len(old))
	for _, err := range old {
		known[faultOf(err)]++
	}
	var rest field.ErrorList
	for _, err := range errs {
		if f := faultOf(err); known[f] > 0 {
			known[f]--
			continue
		}
		rest = append(rest, err)
	}
	return rest
}
