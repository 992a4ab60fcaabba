// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rules holds the validation rules that several kinds share, one file a subject.
// All of them are pure functions: a rule neither changes its arguments nor calls a cluster.
//
// A rule returns every error that it finds, each at the exact path of the field, with a
// sentence that says what to do. It refuses what the CRD's schema refuses, because admission
// runs before the schema's validation, and of an object's own fields what the API server
// would refuse in the children: an error at the field is of more use than one in the
// object's status a second later. The rules of ports are in package ports, those of pod
// templates in package podtemplate, with those of Kubernetes.
package rules

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// MaxErrors is the maximum number of errors in a response.
	MaxErrors = 64
	// maxErrorText is the maximum length of all errors in a response, in bytes as JSON. A
	// response has each error twice, in the message and as a cause, and at most 64 KiB.
	maxErrorText = 28 << 10

	// The maximum lengths of the parts of an error, in bytes: a path and a detail can quote
	// what a client sent, and the value is what it sent.
	maxErrorField  = 512
	maxErrorValue  = 256
	maxErrorDetail = 1024
)

// First returns the first errors of a list, with long values cut, and if there are more
// than MaxErrors or than maxErrorText, one error that counts the others. It must be called
// before errors are formatted as one text: that takes memory in proportion to the square of
// their number, and each can quote a value of any length.
func First(errs field.ErrorList) field.ErrorList {
	out := make(field.ErrorList, 0, min(len(errs), MaxErrors)+1)
	size := 0
	for _, err := range errs[:min(len(errs), MaxErrors)] {
		short := &field.Error{
			Type: err.Type, Field: Cut(err.Field, maxErrorField), BadValue: shortValue(err.BadValue), Detail: Cut(err.Detail, maxErrorDetail),
		}
		text, _ := json.Marshal(short.Error()) // A string is always marshalled.
		if size += len(text); size > maxErrorText {
			break
		}
		out = append(out, short)
	}
	if more := len(errs) - len(out); more > 0 {
		out = append(out, &field.Error{
			Type: field.ErrorTypeTooMany, Field: "errors", BadValue: len(errs), Detail: fmt.Sprintf("and %d more", more),
		})
	}
	return out
}

// shortValue cuts a text, and a value of another type if it is long as JSON, as which
// errors quote it.
func shortValue(value any) any {
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.String:
		if v.Len() > maxErrorValue {
			return Cut(v.String(), maxErrorValue)
		}
	case reflect.Pointer, reflect.Struct, reflect.Map, reflect.Slice:
		if text, err := json.Marshal(value); err == nil && len(text) > maxErrorValue {
			return Cut(string(text), maxErrorValue)
		}
	}
	return value
}

// Cut shortens text to at most so many bytes, without dividing a character. What was cut
// ends in three dots.
func Cut(text string, most int) string {
	const dots = "..."
	if len(text) <= most {
		return text
	}
	end := most - len(dots)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + dots
}

// originUnbuildable marks the errors of a spec from which no children can be built: a pod
// template that cannot be decoded, two values for one field, an image that no container
// runtime can parse. The controller writes nothing for such a spec.
//
// With all other errors it applies the spec, and leaves the decision to the API server's
// own validation of the children. So a new rule must not have the mark unless objects that
// violate it could never be built: it would stop the scaling and the repair of stored
// objects that have worked so far.
const originUnbuildable = "unbuildable"

// MarkUnbuildable marks errors as those of a spec from which no children can be built.
func MarkUnbuildable(errs ...*field.Error) field.ErrorList {
	return field.ErrorList(errs).WithOrigin(originUnbuildable)
}

// Unbuildable returns the errors that are marked by MarkUnbuildable.
func Unbuildable(errs field.ErrorList) field.ErrorList { return marked(errs, originUnbuildable) }

// originIneffective marks the errors of a field that only the operator reads, and that has no
// effect as it is: a schedule that cannot be parsed, a route without a port. The children are
// built, but the object is not ready. A field that becomes a part of a child is in effect if the
// API server accepts it, whatever a rule says.
const originIneffective = "ineffective"

// MarkIneffective marks errors as those of fields that are not in effect.
func MarkIneffective(errs ...*field.Error) field.ErrorList {
	return field.ErrorList(errs).WithOrigin(originIneffective)
}

// Ineffective returns the errors that are marked by MarkIneffective.
func Ineffective(errs field.ErrorList) field.ErrorList { return marked(errs, originIneffective) }

func marked(errs field.ErrorList, origin string) field.ErrorList {
	return slices.DeleteFunc(slices.Clone(errs), func(err *field.Error) bool { return err.Origin != origin })
}

// FormatErrors joins errors for the message of a condition: the first 20 of them, and the
// number of the others.
func FormatErrors(errs field.ErrorList) string {
	const most = 20
	parts := make([]string, 0, min(len(errs), most)+1)
	for _, err := range errs[:min(len(errs), most)] {
		parts = append(parts, err.Error())
	}
	if more := len(errs) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// Others returns the errors of fields that have none in known, and are in no field that has one.
func Others(errs, known field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(errs, func(err *field.Error) bool {
		return slices.ContainsFunc(known, func(other *field.Error) bool {
			_, in := CutField(err.Field, other.Field)
			return in
		})
	})
}

// CutField returns the rest of a path after that of a field. ok is false if path is neither that of
// the field nor of a field in it.
func CutField(path, of string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, of)
	return rest, ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// fault is what makes two errors the same: type and value, and the field, but not where
// in a list it stands, since an item put in front moves all others. Beside a value that
// is wrong, the detail does not count: it can quote another field, and to correct that
// one must not make an error here that was there before look new. Of an error about a
// size, the value is no part of it.
type fault struct{ field, body string }

// maxPath is the longest path of an error in bytes whose indexes are looked for.
const maxPath = 1024

var index = regexp.MustCompile(`\[\d+\]`)

// faultOf returns the fault of an error, and the size that it is about, 0 if none.
func faultOf(err *field.Error) (fault, int) {
	f := fault{field: err.Field}
	if len(err.Field) <= maxPath { // The rest of a longer path is a key, which has no index.
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
	_, omitted := err.BadValue.(field.OmitValueType)
	if err.BadValue != nil && !omitted && (err.Type == field.ErrorTypeInvalid || err.Type == field.ErrorTypeTypeInvalid) {
		return ""
	}
	return err.Detail
}

// Added returns the errors that are not in old, as multisets: a second error
// like one that was there is new, and so is one about a larger size.
func Added(errs, old field.ErrorList) field.ErrorList {
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
