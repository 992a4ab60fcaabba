// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guard sends the requests of a fetch. It decides which addresses are connected to, which redirects are
// followed, and which server gets the credentials.
package guard

import (
	"cmp"
	"context"
	"crypto/tls"
	"maps"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
)

const (
	// connectTimeout bounds one attempt to connect, and the handshake of TLS.
	connectTimeout = 10 * time.Second
	// answerTimeout is how long a server may prepare its answer: a cache that fetches the file itself first takes minutes.
	answerTimeout = 5 * time.Minute
	// idleTimeout is how long a connection is kept for later requests, and maxIdle is how many to one server.
	idleTimeout, maxIdle = 30 * time.Second, 16
	// maxHeaderBytes bounds the headers of an answer.
	maxHeaderBytes = 1 << 20
	// maxRedirects is how many redirects one request follows.
	maxRedirects = 10
	// userAgent is how the fetcher names itself to servers.
	userAgent = "modelbox-fetch"
)

// Client sends requests through the mirrors, and follows safe redirects. Its methods may be called concurrently.
type Client struct {
	Mirrors   Rules
	client    http.Client
	transport *http.Transport
	proxy     func(*http.Request) (*url.URL, error)
	// local says of the servers of URIs, not of redirects, whether they were found at a loopback
	// address at first.
	local sync.Map
}

// Options are what the environment, or a test, decides.
type Options struct {
	// Proxy is what Proxy returns. nil is no proxy.
	Proxy func(*http.Request) (*url.URL, error)
	// TLS has other certificate authorities than the system's.
	TLS *tls.Config
	// Dial replaces the dialer, and with it the check of the addresses that names resolve to.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// New returns a client. SSL_CERT_FILE and SSL_CERT_DIR have the meaning that Go's standard library gives them. It speaks HTTP/1.1
// alone, so that each download has a connection of its own.
func New(mirrors Rules, options Options) *Client {
	c := &Client{Mirrors: mirrors, proxy: options.Proxy}
	c.client = http.Client{Transport: hops{c}, CheckRedirect: c.redirect}
	dialer := &net.Dialer{Timeout: connectTimeout, ControlContext: c.control}
	c.transport = &http.Transport{
		Proxy: c.proxyOf, DialContext: dialer.DialContext, TLSClientConfig: cmp.Or(options.TLS, &tls.Config{MinVersion: tls.VersionTLS12}),
		DisableCompression: true, TLSHandshakeTimeout: connectTimeout, ResponseHeaderTimeout: answerTimeout, IdleConnTimeout: idleTimeout,
		MaxIdleConnsPerHost: maxIdle, MaxResponseHeaderBytes: maxHeaderBytes, ReadBufferSize: 64 << 10, OnProxyConnectResponse: connected,
	}
	if options.Dial != nil {
		c.transport.DialContext = options.Dial
	}
	return c
}

// Close closes the connections that are kept for later requests.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// trust is what a request, and each that it is redirected to, may do. It is in their context.
type trust struct {
	// first is the server of the first request.
	first string
	// plain allows http://. agent is true for the agent of EKS Pod Identity.
	plain, agent bool
	// signed is true if the credentials are for one URL alone.
	signed bool
	// led is true if a server has chosen the URL, which so may not lead to a loopback address.
	led bool
	// direct is the server that is connected to without a proxy.
	direct string
}

type trustKey struct{}

func trustOf(ctx context.Context) trust {
	found, _ := ctx.Value(trustKey{}).(trust)
	return found
}

// Request is one GET request.
type Request struct {
	URL *url.URL
	// Plain allows http://, because a hash of the spec verifies what is fetched.
	Plain bool
	// Led is true if a server has chosen the URL, as in a list, and not the user.
	Led bool
	// Header goes to every server on the way.
	Header http.Header
	// Authorization is the header of that name, which goes to the server of URL alone; empty is none.
	Authorization string
}

// Get sends a request, follows its redirects, and returns the first answer that is none. Its body is to be closed.
func (c *Client) Get(ctx context.Context, request Request) (*http.Response, error) {
	target, err := c.Mirrors.URL(request.URL)
	if err != nil {
		return nil, err
	}
	if target, err = checkURL(target, request.Plain); err != nil {
		return nil, err
	}
	outgoing, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return nil, failure.New(failure.Invalid, "%s is asked for a URL that cannot be requested: check spec.model.uri", showServer(target))
	}
	maps.Copy(outgoing.Header, request.Header)
	if request.Authorization != "" {
		outgoing.Header.Set("Authorization", request.Authorization)
	}
	outgoing.Header.Set("Accept-Encoding", "identity")
	return c.do(outgoing, trust{plain: request.Plain, led: request.Led})
}

// Send sends a request that an SDK has signed, or one to the agent of EKS Pod Identity, which goes past every proxy. It knows no mirror. Where
// a GET is redirected, it is sent without credentials.
func (c *Client) Send(request *http.Request, plain, agent bool) (*http.Response, error) {
	if agent {
		if err := CheckAgent(request.URL); err != nil {
			return nil, err
		}
		return c.do(request, trust{agent: true})
	}
	target, err := checkURL(request.URL, plain)
	if err != nil {
		return nil, err
	}
	request.URL = target
	return c.do(request, trust{plain: plain, signed: true})
}

func (c *Client) do(request *http.Request, what trust) (*http.Response, error) {
	what.first = server(request.URL)
	request.Header.Set("User-Agent", userAgent)
	//nolint:gosec // The address is checked before each connection, see hops.
	response, err := c.client.Do(request.WithContext(context.WithValue(request.Context(), trustKey{}, what)))
	if err != nil {
		return nil, told(err)
	}
	response.Body = body{response.Body}
	return response, nil
}
