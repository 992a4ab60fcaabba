// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The annotations of an object in the cache that could not be decoded completely. No stored
// object has them: the decoder removes them from every object.
const (
	annotationError  = "cache.modelbox-operator.github.io/undecodable"
	annotationStatus = "cache.modelbox-operator.github.io/undecodable-status"
)

// DecodeError reports that a stored object could not be decoded completely. The part that
// could not be decoded is empty, and nothing may be concluded from that.
type DecodeError struct {
	// Message names the fields and the reasons.
	Message string
	// Status is true if the object's status, or it too, could not be decoded.
	Status bool
}

// DecodeErrorOf returns the error of an object in the cache, nil if the object was decoded
// completely.
func DecodeErrorOf(obj metav1.Object) *DecodeError {
	annotations := obj.GetAnnotations()
	message, failed := annotations[annotationError]
	if !failed {
		return nil
	}
	return &DecodeError{Message: message, Status: annotations[annotationStatus] != ""}
}

// annotate writes the error into the annotations of an object.
func (e *DecodeError) annotate(obj metav1.Object) {
	annotations := map[string]string{annotationError: e.Message}
	if e.Status {
		annotations[annotationStatus] = "true"
	}
	for key, value := range obj.GetAnnotations() {
		if _, ours := annotations[key]; !ours {
			annotations[key] = value
		}
	}
	obj.SetAnnotations(annotations)
}

// removeDecodeError removes annotations that were stored and only look like an error.
func removeDecodeError(obj metav1.Object) {
	annotations := obj.GetAnnotations()
	delete(annotations, annotationError)
	delete(annotations, annotationStatus)
}

// add appends the message of another part of the object.
func (e *DecodeError) add(message string) {
	if e.Message != "" {
		e.Message += "; "
	}
	e.Message += message
}

// maxDescribed is the maximum length of a path or an error in a message, in bytes. Either
// may quote a long value.
const maxDescribed = 500

// describe returns a message for the error that a decoder returned for a part of an object.
// It begins with the path of the field.
func describe(part string, err error) string {
	if _, ok := errors.AsType[*fieldError](err); ok {
		return shorten(err.Error())
	}
	path := part
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok && semantic.JSONPointer != "" {
		path = pathOf(string(semantic.JSONPointer))
		if semantic.Err != nil {
			err = semantic.Err
		}
	}
	return shorten(path) + ": " + shorten(err.Error())
}

// fieldError is an error whose message begins with the path of the field.
type fieldError struct{ error }

func shorten(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= maxDescribed {
		return text
	}
	end := maxDescribed
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}

// pathOf returns a JSON pointer in the form in which Kubernetes writes the path of a field.
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
