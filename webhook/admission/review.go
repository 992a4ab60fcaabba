// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"
)

var (
	errMethod      = statusError(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "an AdmissionReview must be sent by POST")
	errContentType = statusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "an AdmissionReview must be sent as application/json")
)

func statusError(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

const (
	reviewKind    = "AdmissionReview"
	reviewVersion = "admission.k8s.io/v1"
)

// exchange is the memory of one review and its answer, which is used again for others.
type exchange struct {
	buf    bytes.Buffer // The text of the review, and then that of the answer.
	review admissionv1.AdmissionReview
	req    admission.Request
	resp   admission.Response
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// mostKept is the memory in bytes that a buffer may keep until its next use, well
// above what most reviews need: one huge object must not take memory forever.
const mostKept = 64 << 10

func (x *exchange) release() {
	if x.buf.Cap() > mostKept {
		return
	}
	x.buf.Reset()
	*x = exchange{buf: x.buf}
	exchanges.Put(x)
}

// read reads the request of a review.
func (x *exchange) read(r *http.Request) error {
	if r.Method != http.MethodPost {
		return errMethod
	}
	if !isJSON(r.Header.Get("Content-Type")) {
		return errContentType
	}
	// Memory grows with what has arrived, not with what a header announces.
	if _, err := x.buf.ReadFrom(r.Body); err != nil {
		return fmt.Errorf("reading the AdmissionReview: %w", err)
	}
	x.review.Request = &x.req.AdmissionRequest
	if err := decodeReview(x.buf.Bytes(), &x.review); err != nil {
		return err
	}
	return checkReview(&x.review)
}

// decodeReview decodes a review into one that has a request. A value of the wrong type
// is left out: the API server sends none, and what must be there is checked next.
func decodeReview(body []byte, review *admissionv1.AdmissionReview) error {
	request := review.Request
	if jsonv2.Unmarshal(body, review) == nil {
		return nil
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return errors.New("the request has no body: an AdmissionReview is expected")
	}
	// As with objects (see decode), the API server's own decoder has the last word.
	*request = admissionv1.AdmissionRequest{}
	*review = admissionv1.AdmissionReview{Request: request}
	err := kjson.UnmarshalCaseSensitivePreserveInts(body, review)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !ok {
		return fmt.Errorf("the body is not JSON: %w", err)
	}
	return nil
}

// checkReview returns why a review cannot be answered.
func checkReview(review *admissionv1.AdmissionReview) error {
	switch {
	case review.Kind != reviewKind:
		return fmt.Errorf("the body is of kind %q: %q is expected", review.Kind, reviewKind)
	case review.APIVersion != reviewVersion:
		return fmt.Errorf("the review is of version %q, and only %q is served: set admissionReviewVersions: [v1] in the webhook configuration",
			review.APIVersion, reviewVersion)
	case review.Request == nil || review.Request.UID == "":
		return errors.New("the review has no request, or one with no uid: it cannot be answered")
	}
	return nil
}

// complete sets what every response has. Response.Complete would add a status to an
// allowed one, which the API server ignores.
func (x *exchange) complete() error {
	x.resp.UID = x.req.UID
	if len(x.resp.Patches) == 0 {
		return nil
	}
	if err := x.resp.Complete(x.req); err != nil {
		return fmt.Errorf("encoding the patch: %w", err)
	}
	return nil
}

// encode writes the answer.
func (x *exchange) encode() error {
	x.buf.Reset()
	x.review.TypeMeta = metav1.TypeMeta{Kind: reviewKind, APIVersion: reviewVersion}
	x.review.Request, x.review.Response = nil, &x.resp.AdmissionResponse
	return json.NewEncoder(&x.buf).Encode(&x.review)
}

func isJSON(contentType string) bool {
	const want = "application/json"
	if contentType == want {
		return true
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	return err == nil && mediaType == want
}
