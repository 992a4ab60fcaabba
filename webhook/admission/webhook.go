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
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Webhook serves an admission.Handler over HTTP, as the type of the same name in
// controller-runtime does. It differs in three ways: it decodes a review in half of
// the time, it answers what is not a review with an HTTP status and a sentence, which
// the API server passes on, and it counts reviews by kind and result.
type Webhook struct {
	Handler admission.Handler

	kind, webhook string
	metrics       *webhookMetrics
}

// NewWebhook returns a Webhook that serves a handler. kind and webhook (mutating or
// validating) are the labels of its metrics.
func NewWebhook(kind, webhook string, handler admission.Handler) *Webhook {
	return &Webhook{Handler: handler, kind: kind, webhook: webhook, metrics: metricsFor(kind, webhook)}
}

// ServeHTTP answers a review.
func (wh *Webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	x := exchanges.Get().(*exchange)
	defer x.release()
	err := wh.respond(r, x)
	if err == nil {
		err = x.encode()
	}
	wh.metrics.observe(x.req.Operation, &x.resp, time.Since(start))
	if err != nil {
		wh.log().V(1).Info("Rejected", "remote", r.RemoteAddr, "reason", err.Error())
		reject(w, err)
		return
	}
	w.Header()["Content-Type"] = jsonContent
	if _, err := w.Write(x.buf.Bytes()); err != nil {
		wh.log().V(1).Info("The answer could not be sent", "uid", x.req.UID, "reason", err.Error())
	}
}

var jsonContent = []string{"application/json"}

// respond reads a review and sets the response to it. A panic ends one request and not
// the process.
func (wh *Webhook) respond(r *http.Request, x *exchange) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = wh.panicked(cause, x)
		}
	}()
	if err := x.read(r); err != nil {
		return err
	}
	if err := r.Context().Err(); err != nil {
		return fmt.Errorf("the client is gone: %w", err)
	}
	x.resp = wh.Handler.Handle(r.Context(), x.req)
	if x.resp.Result != nil && x.resp.Result.Code == http.StatusInternalServerError {
		wh.log().Error(errors.New(x.resp.Result.Message), "Answered with an internal error", "uid", x.req.UID)
	}
	return x.complete()
}

func (wh *Webhook) panicked(cause any, x *exchange) error {
	wh.metrics.panics.Inc()
	err := apierrors.NewInternalError(fmt.Errorf("the %s webhook for %s panicked: %v", wh.webhook, wh.kind, cause))
	wh.log().Error(err, "Recovered", "uid", x.req.UID, "stack", string(debug.Stack()))
	if x.req.UID == "" {
		return err
	}
	x.resp = status(err)
	return x.complete()
}

func (wh *Webhook) log() logr.Logger {
	return log.Log.WithName("admission").WithValues("kind", wh.kind, "webhook", wh.webhook)
}

// reject answers what is not a review with the status of an error and its text. The
// API server passes the text on because it is plain.
func reject(w http.ResponseWriter, err error) {
	code := http.StatusBadRequest
	if known, ok := errors.AsType[*apierrors.StatusError](err); ok {
		code = int(known.ErrStatus.Code)
	} else if errors.Is(err, os.ErrDeadlineExceeded) {
		code = http.StatusRequestTimeout
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	if code == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", http.MethodPost)
	}
	http.Error(w, rules.Cut(err.Error(), maxText), code)
}

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
	if err := checkEnvelope(x.buf.Bytes()); err != nil {
		return err
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
	// To find a member that is there twice takes memory for the names of all members, those of
	// the objects included. Of two, the last counts, as for the API server.
	if jsonv2.Unmarshal(body, review, jsontext.AllowDuplicateNames(true)) == nil {
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
		return fmt.Errorf("the body is of kind %.64q: %q is expected", review.Kind, reviewKind)
	case review.APIVersion != reviewVersion:
		return fmt.Errorf("the review is of version %.64q, and only %q is served: set admissionReviewVersions: [v1] in the webhook configuration",
			review.APIVersion, reviewVersion)
	case review.Request == nil || review.Request.UID == "":
		return errors.New("the review has no request, or one with no uid: it cannot be answered")
	case len(review.Request.UID) > maxName:
		return fmt.Errorf("the uid of the review has more than %d bytes, and would be repeated in the response", maxName)
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
