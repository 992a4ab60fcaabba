// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/mirror"
)

const (
	// connectTimeout bounds one attempt to connect.
	connectTimeout = 30 * time.Second
	// maxHeaderBytes bounds the headers of an answer.
	maxHeaderBytes = 1 << 20
	// userAgent is how the fetcher names itself to servers.
	userAgent = "modelbox-fetch"
)

// Client sends GET requests through the mirrors, and follows safe redirects.
type Client struct {
	Mirrors   mirror.Rules
	transport *http.Transport
}

// Options are what tests change. The zero value is what the program uses.
type Options struct {
	// Proxy is http.ProxyFromEnvironment if it is nil.
	Proxy func(*http.Request) (*url.URL, error)
	// TLS has other certificate authorities than the system's.
	TLS *tls.Config
	// Dial replaces the dialer, and with it the check of the addresses that names resolve to.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// New returns a client. HTTPS_PROXY, HTTP_PROXY and NO_PROXY, and SSL_CERT_FILE and SSL_CERT_DIR, have the meaning that Go's
// standard library gives them.
func New(mirrors mirror.Rules, options Options) *Client {
	dialer := &net.Dialer{Timeout: connectTimeout, ControlContext: control}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true, DisableCompression: true, TLSHandshakeTimeout: connectTimeout, IdleConnTimeout: connectTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes, ReadBufferSize: 64 << 10, OnProxyConnectResponse: authenticated,
	}
	if options.Proxy != nil {
		transport.Proxy = options.Proxy
	}
	if options.TLS != nil {
		transport.TLSClientConfig = options.TLS
	}
	if options.Dial != nil {
		transport.DialContext = options.Dial
	}
	return &Client{Mirrors: mirrors, transport: transport}
}

// authenticated refuses the answer of a proxy that wants credentials, which no other attempt has.
func authenticated(_ context.Context, proxy *url.URL, _ *http.Request, response *http.Response) error {
	if response.StatusCode != http.StatusProxyAuthRequired {
		return nil
	}
	return failure.New(failure.Denied, "407 Proxy Authentication Required: %s: put the user name and the password into HTTPS_PROXY", Show(proxy))
}

// Close closes the connections that are kept for later requests.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Request is one GET request.
type Request struct {
	URL *url.URL
	// Plain allows http://, because a hash of the spec verifies what is fetched.
	Plain bool
	// Header goes to every server on the way.
	Header http.Header
	// Sign adds credentials. It is called for requests to the server of URL alone, before any other header is set; nil adds none.
	Sign func(*http.Request) error
}

// Get sends a request, follows its redirects, and returns the first answer that is none. Its body is to be closed.
func (c *Client) Get(ctx context.Context, request Request) (*http.Response, error) {
	first, err := c.Mirrors.URL(request.URL)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for target := first; ; {
		if err := checkHop(seen, target); err != nil {
			return nil, err
		}
		response, err := c.once(ctx, request, first, target)
		if err != nil || !redirects(response.StatusCode) || response.Header.Get("Location") == "" {
			return response, err
		}
		_ = response.Body.Close()
		if target, err = follow(target, response.Header.Get("Location"), request.Plain); err != nil {
			return nil, err
		}
		if target, err = c.Mirrors.URL(target); err != nil {
			return nil, err
		}
	}
}

// checkHop refuses a URL that the request has been redirected to before, and too many redirects.
func checkHop(seen map[string]bool, target *url.URL) error {
	text := target.String()
	if seen[text] {
		return failure.New(failure.Refused, "the redirects of %s form a loop: use the URL that has the model", Show(target))
	}
	seen[text] = true
	if len(seen) > maxRedirects+1 {
		return failure.New(failure.Refused, "there are more than %d redirects until %s: use the URL that has the model", maxRedirects, Show(target))
	}
	return nil
}

func (c *Client) once(ctx context.Context, request Request, first, target *url.URL) (*http.Response, error) {
	same := sameServer(first, target)
	if err := checkURL(target, request.Plain, !same); err != nil {
		return nil, err
	}
	outgoing, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return nil, failure.New(failure.Invalid, "%s is not a URL that can be requested: check spec.model.uri", Show(target))
	}
	outgoing.URL = target
	if same && request.Sign != nil {
		if err := request.Sign(outgoing); err != nil {
			return nil, err
		}
	}
	maps.Copy(outgoing.Header, request.Header)
	outgoing.Header.Set("Accept-Encoding", "identity")
	outgoing.Header.Set("User-Agent", userAgent)
	response, err := c.transport.RoundTrip(outgoing.WithContext(c.mark(outgoing, !same)))
	return response, unwrapped(err)
}

// unwrapped returns a *failure.Failure within err alone, without what was being dialed.
func unwrapped(err error) error {
	if f, ok := errors.AsType[*failure.Failure](err); ok {
		return f
	}
	return err
}

// redirectedKey marks the context of a request that another server has redirected here.
type redirectedKey struct{}

// mark returns the context of a request, in which control finds whether it is redirected. What a proxy connects to is the proxy's
// decision, and a proxy may well have a loopback address.
func (c *Client) mark(request *http.Request, redirected bool) context.Context {
	if proxy, err := c.transport.Proxy(request); !redirected || err != nil || proxy != nil {
		return request.Context()
	}
	return context.WithValue(request.Context(), redirectedKey{}, true)
}

// control checks an address after the name is resolved and before it is connected to, so that no later answer of
// the name server can differ.
func control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	redirected, _ := ctx.Value(redirectedKey{}).(bool)
	return CheckAddress(target.Addr(), redirected)
}
