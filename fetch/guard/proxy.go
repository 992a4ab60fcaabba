// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/kinds/modeluri"
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
			failure.Quote(certificate.Err.Error()))
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

// connected returns why a proxy did not connect to a server. Its own words are not told.
func connected(_ context.Context, proxy *url.URL, request *http.Request, response *http.Response) error {
	status := fmt.Sprintf("%d %s", response.StatusCode, http.StatusText(response.StatusCode))
	switch code := response.StatusCode; {
	case code == http.StatusOK:
		return nil
	case code == http.StatusProxyAuthRequired:
		return failure.New(failure.Denied, "%s: %s: put the user name and the password into HTTPS_PROXY", status, Show(proxy))
	case code >= 500 || code == http.StatusRequestTimeout || code == http.StatusTooManyRequests:
		return &net.OpError{Op: status, Err: fmt.Errorf("the proxy %s does not connect to %s", Show(proxy), failure.Quote(request.Host))}
	}
	return failure.New(failure.Denied, "%s: the proxy %s does not connect to %s: allow it there, or name the host in NO_PROXY", status, Show(proxy), failure.Quote(request.Host))
}

// Proxy reads HTTPS_PROXY, HTTP_PROXY and NO_PROXY, also in lower case. A value that is no proxy is an error: Go's own function
// ignores it, and connects past the proxy.
func Proxy(getenv func(string) string) (func(*http.Request) (*url.URL, error), error) {
	either := func(upper, lower string) string { return cmp.Or(getenv(upper), getenv(lower)) }
	config := httpproxy.Config{
		HTTPSProxy: either("HTTPS_PROXY", "https_proxy"), HTTPProxy: either("HTTP_PROXY", "http_proxy"), NoProxy: either("NO_PROXY", "no_proxy"),
	}
	for name, value := range map[string]string{"HTTPS_PROXY": config.HTTPSProxy, "HTTP_PROXY": config.HTTPProxy} {
		if value != "" && !isProxy(value) {
			return nil, failure.New(failure.Invalid, "%s is no URL of a proxy: write http://host:port, without spaces and line breaks, and with %%25 for a per cent sign of the password", name)
		}
	}
	decide := config.ProxyFunc()
	return func(request *http.Request) (*url.URL, error) { return decide(request.URL) }, nil
}

// isProxy reads a value as httpproxy does: a URL, or a host with a port.
func isProxy(text string) bool {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	proxy, err := url.Parse(text)
	if err != nil {
		return false
	}
	_, err = modeluri.Host(proxy, false)
	return err == nil && proxy.Hostname() != "" && slices.Contains([]string{"http", "https", "socks5", "socks5h"}, proxy.Scheme)
}
