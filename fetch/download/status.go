// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
)

// maxErrorBody is how many bytes of an error's body are read.
const maxErrorBody = 16 << 10

// Answer is a server's answer that is no success.
type Answer struct {
	Status int
	Header http.Header
	// Body is its beginning.
	Body []byte
}

// Explain returns a detail of an answer to show after the status, and the way out. Empty texts stand for what the
// status alone says.
type Explain func(Answer) (detail, wayOut string)

// refusal returns the error for an answer that is no success: temporary for the statuses that may pass.
func refusal(response *http.Response, target *url.URL, explain Explain, now time.Time) error {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	answer := Answer{Status: response.StatusCode, Header: response.Header, Body: body}
	var detail, wayOut string
	if explain != nil {
		detail, wayOut = explain(answer)
	}
	shown := fmt.Sprintf("%d %s", answer.Status, http.StatusText(answer.Status))
	if detail != "" {
		shown += " (" + failure.Quote(detail) + ")"
	}
	if passes(answer.Status) {
		return &temporary{err: fmt.Errorf("%s: %s", shown, guard.Show(target)), after: retryAfter(answer.Header, now)}
	}
	word, usual := final(answer.Status)
	if wayOut == "" {
		wayOut = usual
	}
	return failure.New(word, "%s: %s: %s", shown, guard.Show(target), wayOut)
}

// passes is true for the statuses that another attempt may cure.
func passes(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

func final(status int) (failure.Word, string) {
	switch status {
	case http.StatusNotFound, http.StatusGone:
		return failure.NotFound, "check spec.model.uri"
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return failure.Denied, "check spec.model.uri, and the Secret of spec.model.credentials"
	}
	return failure.Invalid, "check spec.model.uri"
}

// broken returns the error for a request without an answer, or with a body that broke off: temporary, except where the
// connection was refused by the fetcher itself.
func broken(err error, target *url.URL) error {
	if f, ok := errors.AsType[*failure.Failure](err); ok {
		return f
	}
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err // The outer error has the URL with its query.
	}
	if certificate, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return failure.New(failure.Refused, "%s: %w: use a certificate that the image trusts, or add its authority's by SSL_CERT_DIR", guard.Show(target), certificate.Err)
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return failure.New(failure.Invalid, "%s answers without TLS: use the port that serves https://", guard.Show(target))
	}
	again := &temporary{err: fmt.Errorf("%s: %w", guard.Show(target), err)}
	if name, ok := errors.AsType[*net.DNSError](err); ok && name.IsNotFound {
		again.within = unknownHost
	}
	return again
}
