// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The annotations by which an object in the cache says that it could not be decoded
// whole. No stored object has them: the decoder removes them from every object.
const (
	annotationError  = "cache.modelbox-operator.github.io/undecodable"
	annotationStatus = "cache.modelbox-operator.github.io/undecodable-status"
)

// Annotations are those that a cache must keep readable.
func Annotations() []string { return []string{annotationError, annotationStatus} }

// Failure says why an object could not be decoded whole. The part of it that could
// not be is empty: nothing may be concluded from that.
type Failure struct {
	// Message names the field and says what is wrong with it, "" if the object was
	// decoded whole.
	Message string
	// Status says that (also) the object's status could not be decoded.
	Status bool
}

// FailureOf is the failure of an object in the cache, nil if there is none.
func FailureOf(obj metav1.Object) *Failure {
	annotations := obj.GetAnnotations()
	message, failed := annotations[annotationError]
	if !failed {
		return nil
	}
	return &Failure{Message: message, Status: annotations[annotationStatus] != ""}
}

// Mark gives an object a failure.
func (f *Failure) Mark(obj metav1.Object) {
	annotations := map[string]string{annotationError: f.Message}
	if f.Status {
		annotations[annotationStatus] = "true"
	}
	for key, value := range obj.GetAnnotations() {
		if _, ours := annotations[key]; !ours {
			annotations[key] = value
		}
	}
	obj.SetAnnotations(annotations)
}

// unmark removes what only looks like a failure, because it was stored.
func unmark(obj metav1.Object) {
	annotations := obj.GetAnnotations()
	delete(annotations, annotationError)
	delete(annotations, annotationStatus)
}

// add adds what is wrong with another part of the object.
func (f *Failure) add(message string) {
	if f.Message != "" {
		f.Message += "; "
	}
	f.Message += message
}

// describe says what a decoder found in a part of an object: the field first, and no
// more than a line of what may be a long value.
func describe(part string, err error) string {
	const most = 500
	if _, ok := errors.AsType[*described](err); ok {
		return short(err.Error(), most)
	}
	path := part
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok && wrong.JSONPointer != "" {
		path = pathOf(string(wrong.JSONPointer))
		if wrong.Err != nil {
			err = wrong.Err
		}
	}
	return short(path, most) + ": " + short(err.Error(), most)
}

// described is an error that names its fields itself.
type described struct{ error }

func short(text string, most int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "..."
}

// pathOf writes a JSON pointer as Kubernetes writes the path of a field.
func pathOf(pointer string) string {
	var path strings.Builder
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch _, err := strconv.Atoi(token); {
		case err == nil:
			path.WriteString("[" + token + "]")
		case path.Len() == 0:
			path.WriteString(token)
		default:
			path.WriteString("." + token)
		}
	}
	return path.String()
}
