// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch/raw"
)

// validateUpdate returns the errors of obj, with misfits, the errors of what could not
// be decoded. It is ratcheting validation: an update is refused only for errors that it
// adds. An error of the stored object, perhaps from before a rule existed, must not
// prevent a change of its labels or its image (KEP-4008 does the same for schemas). The
// old object is decoded only if there is an error to compare.
//
// If the client is gone, it returns an error, which nothing reads, instead of working on.
func (h *handler[T, P]) validateUpdate(ctx context.Context, obj *T, misfits field.ErrorList, req *admission.Request) field.ErrorList {
	if ctx.Err() != nil {
		return gone(ctx)
	}
	errs := append(slices.Clip(misfits), h.Validate(obj)...)
	if len(errs) == 0 {
		return nil
	}
	if len(errs) > maxRatcheted {
		return errs
	}
	if ctx.Err() != nil {
		return gone(ctx)
	}
	// Decoded anew: the one that Default got must not be changed.
	if old, before := h.old(req); old != nil {
		h.Default(old, nil, nil)
		errs = added(errs, append(before, h.Validate(old)...))
	}
	return withoutEchoes(errs, req.Object.Raw)
}

// maxRatcheted is how many errors are compared with those of the stored object. No object in
// use has more, and to validate two such objects would take twice the time.
const maxRatcheted = 256

func gone(ctx context.Context) field.ErrorList {
	return field.ErrorList{field.InternalError(field.NewPath("(root)"), context.Cause(ctx))}
}

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
		sizes, ok := take(known[f], size)
		if known[f] = sizes; !ok {
			rest = append(rest, err)
		}
	}
	return rest
}

// take removes the smallest of sorted sizes that is at least size, and reports whether
// there is one. Equal sizes, such as those of all errors that are about none, are removed
// from the end, which moves no others.
func take(sizes []int, size int) ([]int, bool) {
	if last := len(sizes) - 1; last >= 0 && sizes[last] == size {
		return sizes[:last], true
	}
	at, _ := slices.BinarySearch(sizes, size)
	if at == len(sizes) {
		return sizes, false
	}
	return slices.Delete(sizes, at, at+1), true
}

// withoutEchoes drops the errors that only follow from a value that was left out: at its
// place, within it, that what it is in lacks it, or of a default that was derived from
// it, and so is nowhere in the object as it was sent. They go after the comparison with
// the stored object, since what they hide there would look new later.
func withoutEchoes(errs field.ErrorList, object []byte) field.ErrorList {
	var left []string
	for _, err := range errs {
		if err.Type == field.ErrorTypeTypeInvalid {
			left = append(left, err.Field)
		}
	}
	if len(left) == 0 {
		return errs
	}
	slices.Sort(left)
	rest := make(field.ErrorList, 0, len(errs))
	for i, err := range errs {
		if i >= maxCompared || !isEcho(err, left, object) {
			rest = append(rest, err)
		}
	}
	return rest
}

// maxCompared is how many errors are compared with values that were left out, which reads
// the object for each of them. A response has the first 64 errors.
const maxCompared = 128

func isEcho(err *field.Error, left []string, object []byte) bool {
	switch {
	case err.Type == field.ErrorTypeTypeInvalid, len(err.Field) > maxText: // Nothing else has such a long key.
		return false
	case err.Type == field.ErrorTypeInvalid && !sent(err.Field, object):
		return true
	}
	return echoes(err.Field, left)
}

// sent reports whether an object has a value at a path.
func sent(path string, object []byte) bool {
	_, ok := raw.Find(object, pointer(path))
	return ok
}

// pointer returns a path as a JSON pointer.
func pointer(path string) string {
	var names []string
	for up := ""; path != ""; path = up {
		up = parent(path)
		names = append(names, patch.Key("", strings.Trim(path[len(up):], ".[]")))
	}
	slices.Reverse(names)
	return strings.Join(names, "")
}

// echoes reports whether an error's path is one of the sorted paths, or below one, or what
// one of them is in.
func echoes(path string, left []string) bool {
	for up := path; up != ""; up = parent(up) {
		if _, found := slices.BinarySearch(left, up); found {
			return true
		}
	}
	at, _ := slices.BinarySearch(left, path)
	for _, below := range left[at:] {
		if !strings.HasPrefix(below, path) {
			return false
		}
		if parent(below) == path {
			return true
		}
	}
	return false
}

// parent returns the path of the object or list that holds the field at a path.
func parent(path string) string {
	if strings.HasSuffix(path, "]") {
		return path[:max(strings.LastIndexByte(path, '['), 0)]
	}
	return path[:max(strings.LastIndexByte(path, '.'), 0)]
}
