// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"bytes"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/json"
)

// text is a JSON string as it was sent, quotes and escapes included, or any other
// value, which then equals no string. It is a part of the request's body, not a
// copy, and so costs nothing.
type text []byte

func (t *text) UnmarshalJSON(b []byte) error {
	*t = b
	return nil
}

func (t text) is(s string) bool {
	return len(t) == len(s)+2 && t[0] == '"' && string(t[1:len(t)-1]) == s
}

// empty says whether there is no string, or one of no characters.
func (t text) empty() bool { return len(t) <= 2 || t[0] != '"' }

// String reads the string; it is "" if that is not one.
func (t text) String() string {
	var s string
	if json.UnmarshalCaseSensitivePreserveInts(t, &s) != nil {
		return ""
	}
	return s
}

// value is any JSON value as it was sent: a part of the body, like text.
type value []byte

func (v *value) UnmarshalJSON(b []byte) error {
	*v = b
	return nil
}

func (v value) absent() bool { return len(v) == 0 || string(v) == "null" }

// review is an admission.k8s.io/v1 AdmissionReview, as far as it matters here.
type review struct {
	APIVersion text    `json:"apiVersion"`
	Kind       text    `json:"kind"`
	Request    request `json:"request"`
}

type request struct {
	UID         text  `json:"uid"`
	Kind        kind  `json:"kind"`
	SubResource text  `json:"subResource"`
	Name        text  `json:"name"`
	Operation   text  `json:"operation"`
	Object      value `json:"object"`
	OldObject   value `json:"oldObject"`
}

type kind struct {
	Group   text `json:"group"`
	Version text `json:"version"`
	Kind    text `json:"kind"`
}

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

// read decodes a review and checks that it can be answered. What it returns
// shares memory with body.
func (r *review) read(body []byte) error {
	*r = review{}
	if len(bytes.TrimSpace(body)) == 0 {
		return errors.New("the request has no body: an AdmissionReview is expected")
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(body, r); err != nil {
		return fmt.Errorf("the body is not an AdmissionReview: %w", err)
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

// untouched says whether there is nothing to look at: what a webhook configuration
// should not send here, but must not break if it does. A delete, above all, is
// never held up.
func (r *request) untouched() bool {
	return r.Operation.is("DELETE") || r.Operation.is("CONNECT") || !r.SubResource.empty()
}
