// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/modelbox-operator/modelbox-operator/webhook/patch/raw"
)

// text is a JSON string as it was sent, quotes and escapes included, or any other
// value, which then equals no string. It is a part of the request's body, not a
// copy, and so costs nothing.
type text []byte

func (t text) is(s string) bool {
	return len(t) == len(s)+2 && t[0] == '"' && string(t[1:len(t)-1]) == s
}

// empty says whether there is no string, or one of no characters.
func (t text) empty() bool { return len(t) <= 2 || t[0] != '"' }

// String reads the string; it is "" if that is not one.
func (t text) String() string {
	var s string
	if json.Unmarshal(t, &s) != nil {
		return ""
	}
	return s
}

// value is any JSON value as it was sent: a part of the body, like text.
type value []byte

func (v value) absent() bool { return len(v) == 0 || string(v) == "null" }

// review is an admission.k8s.io/v1 AdmissionReview, as far as it matters here.
type review struct {
	APIVersion, Kind text
	Request          request
}

type request struct {
	UID, SubResource, Name, Operation text
	Kind                              kind
	Object, OldObject                 value
}

type kind struct{ Group, Version, Kind text }

func (k kind) is(gvk schema.GroupVersionKind) bool {
	return k.Group.is(gvk.Group) && k.Version.is(gvk.Version) && k.Kind.is(gvk.Kind)
}

func (k kind) String() string {
	return schema.GroupVersionKind{Group: k.Group.String(), Version: k.Version.String(), Kind: k.Kind.String()}.String()
}

const (
	reviewVersion = "admission.k8s.io/v1"
	reviewKind    = "AdmissionReview"
)

// read finds the parts of a review, without decoding it, and checks that it can be
// answered. What it finds is memory of body.
func (r *review) read(body []byte) error {
	*r = review{}
	if !json.Valid(body) {
		return invalidJSON(body)
	}
	for key, value := range raw.Members(body) {
		switch string(key) {
		case `"apiVersion"`:
			r.APIVersion = value
		case `"kind"`:
			r.Kind = value
		case `"request"`:
			r.Request = requestIn(value)
		}
	}
	switch {
	case !r.Kind.is(reviewKind):
		return fmt.Errorf("the body is of kind %q: %q is expected", r.Kind, reviewKind)
	case !r.APIVersion.is(reviewVersion):
		return fmt.Errorf("the review is of version %q, and only %q is served: set admissionReviewVersions: [v1] in the webhook configuration",
			r.APIVersion, reviewVersion)
	case r.Request.UID.empty():
		return errors.New("the review has no request, or one with no uid: it cannot be answered")
	}
	return nil
}

func requestIn(object []byte) (r request) {
	for key, value := range raw.Members(object) {
		switch string(key) {
		case `"uid"`:
			r.UID = value
		case `"kind"`:
			r.Kind = kindIn(value)
		case `"subResource"`:
			r.SubResource = value
		case `"name"`:
			r.Name = value
		case `"operation"`:
			r.Operation = value
		case `"object"`:
			r.Object = value
		case `"oldObject"`:
			r.OldObject = value
		}
	}
	return r
}

func kindIn(object []byte) (k kind) {
	for key, value := range raw.Members(object) {
		switch string(key) {
		case `"group"`:
			k.Group = value
		case `"version"`:
			k.Version = value
		case `"kind"`:
			k.Kind = value
		}
	}
	return k
}

func invalidJSON(body []byte) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return errors.New("the request has no body: an AdmissionReview is expected")
	}
	return fmt.Errorf("the body is not JSON: %w", json.Unmarshal(body, new(json.RawMessage)))
}

// untouched says whether there is nothing to look at: what a webhook configuration
// should not send here, but must not break if it does. A delete, above all, is
// never held up.
func (r *request) untouched() bool {
	return r.Operation.is("DELETE") || r.Operation.is("CONNECT") || !r.SubResource.empty()
}
