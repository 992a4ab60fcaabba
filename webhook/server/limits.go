// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A handler gets these errors when it reads a request's body, and may answer with
// their status.
var (
	errTooLarge = statusError(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge,
		"the request is larger than the webhook server accepts", 0)
	// The API server repeats a request, also a POST, if the answer has a Retry-After.
	errOverCapacity = statusError(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
		"the webhook server has as many requests in flight as it accepts at once", 1)
)

func statusError(code int32, reason metav1.StatusReason, message string, retryAfter int32) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
		Details: &metav1.StatusDetails{RetryAfterSeconds: retryAfter},
	}}
}

// serveLimited serves a request if the limits allow it. A request is counted before
// its body is read: waiting for a body costs as much as deciding on it.
func (s *Server) serveLimited(w http.ResponseWriter, r *http.Request) {
	inFlight.Inc()
	defer inFlight.Dec()
	defer s.inFlight.Add(-1)
	limited := &limitedRequest{
		drainingWriter: drainingWriter{ResponseWriter: w, server: s},
		limitedBody:    limitedBody{ReadCloser: r.Body, server: s},
	}
	defer limited.release()
	switch {
	case s.inFlight.Add(1) > s.opts.MaxInFlight:
		overCapacityTotal.Inc()
		reject(&limited.drainingWriter, errOverCapacity)
	case r.ContentLength > s.opts.MaxBodyBytes:
		reject(&limited.drainingWriter, errTooLarge)
	default:
		s.limitReadTime(w, r)
		r.Body = &limited.limitedBody
		s.mux.ServeHTTP(&limited.drainingWriter, r)
	}
}

// limitReadTime bounds the time for the body. http.Server.ReadTimeout is no use: it
// counts from the accept of a connection that may have been idle since then.
func (s *Server) limitReadTime(w http.ResponseWriter, r *http.Request) {
	if r.Body != http.NoBody {
		// If it fails, so does the read.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.opts.ReadTimeout))
	}
}

func reject(w http.ResponseWriter, err *apierrors.StatusError) {
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	http.Error(w, err.Error(), int(err.ErrStatus.Code))
}

// limitedRequest is what the server adds to a request.
type limitedRequest struct {
	drainingWriter
	limitedBody
}

// limitedBody is a request's body, counted as it is read.
type limitedBody struct {
	io.ReadCloser
	server *Server
	read   int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	switch total := b.server.bytes.Add(int64(n)); {
	case b.read > b.server.opts.MaxBodyBytes:
		return n, errTooLarge
	case total > b.server.opts.MaxBytesInFlight:
		overCapacityTotal.Inc()
		return n, errOverCapacity
	}
	return n, err
}

func (b *limitedBody) release() { b.server.bytes.Add(-b.read) }
