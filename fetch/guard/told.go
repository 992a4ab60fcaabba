// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

// errNoHTTP stands for errors whose text has what the server said, such as a header that is none: that may be what it was sent.
var errNoHTTP = errors.New("the answer is no valid HTTP, or the connection was closed")

// told returns an error of the client as it may be told: a *failure.Failure alone, without what was being dialed, one whose
// text is of this machine, or else errNoHTTP.
func told(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err // The outer error has the URL with its query.
	}
	if f, ok := errors.AsType[*failure.Failure](err); ok {
		return f
	}
	if address, ok := errors.AsType[*modeluri.AddressError](err); ok {
		return failure.New(failure.Refused, "%w", address)
	}
	if certificate, ok := errors.AsType[*tls.CertificateVerificationError](err); ok { // Its names are the server's.
		return failure.New(failure.Refused, "the certificate of the server: %s: use a certificate that the image trusts, or add its authority's by SSL_CERT_DIR",
			certificate.Err.Error())
	}
	for _, plain := range []error{context.Canceled, io.ErrUnexpectedEOF, http.ErrSchemeMismatch} {
		if errors.Is(err, plain) {
			return plain
		}
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF // Never the end of a body.
	}
	if own, ok := errors.AsType[net.Error](err); ok { // Of the dialer, of TLS's records, or of a timeout.
		return own
	}
	return errNoHTTP
}

// body is the body of an answer, whose errors are told.
type body struct{ io.ReadCloser }

func (b body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if err != nil && err != io.EOF { //nolint:errorlint // io.Reader's end is this very value.
		err = told(err)
	}
	return n, err
}
