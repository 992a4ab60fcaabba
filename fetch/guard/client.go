// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guard sends the requests of a fetch. It decides which addresses are connected to, which redirects are
// followed, and which server gets the credentials.
package guard

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
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

// redirect decides whether a redirect is followed, and where it leads to by the mirrors: never to another scheme than https://, unless both
// are http:// and that is allowed.
func (c *Client) redirect(request *http.Request, via []*http.Request) error {
	what, from, to := trustOf(request.Context()), via[len(via)-1].URL, request.URL
	if what.agent || via[0].Method != http.MethodGet || what.signed && request.Response.Header.Get("X-Amz-Bucket-Region") != "" { // Which says where the bucket is.
		return http.ErrUseLastResponse
	}
	if err := mayLead(from, to); err != nil {
		return err
	}
	to.RawQuery = strings.ReplaceAll(to.RawQuery, " ", "%20")
	to, err := c.Mirrors.URL(to)
	if err == nil {
		to, err = checkURL(to, what.plain)
	}
	if err != nil {
		return err
	}
	request.URL, request.Host = to, ""
	request.Header.Del("Referer")
	if what.signed || server(to) != what.first {
		maps.DeleteFunc(request.Header, func(name string, _ []string) bool { return !slices.Contains(forAll, name) })
	}
	if len(via) > maxRedirects {
		return failure.New(failure.Refused, "there are more than %d redirects, the last of them to %s: use the URL that has the model", maxRedirects, showServer(to))
	}
	return nil
}

// mayLead returns an error if a redirect may not be followed, whatever the mirrors make of it.
func mayLead(from, to *url.URL) error {
	switch {
	case to.Opaque != "":
		return failure.New(failure.Refused, "%s redirects to something that is no URL: use the URL that has the model", showServer(from))
	case to.User != nil:
		return failure.New(failure.Refused, "%s redirects to a URL with a user name: use the URL that has the model", showServer(from))
	case to.Scheme != "https" && (to.Scheme != "http" || from.Scheme != "http"):
		return failure.New(failure.Refused, "%s redirects to %s, which is less safe: use an https:// URL that stays with https://", showServer(from), showServer(to))
	}
	return nil
}

// forAll are the headers that go to every server on the way.
var forAll = []string{"Accept-Encoding", "If-Match", "If-Range", "Range", "User-Agent"}

// hops sends each request, also of redirects.
type hops struct{ *Client }

// RoundTrip checks the address of a URL that a server has chosen. A server that was found at a loopback address without its own doing stays
// allowed there.
func (c hops) RoundTrip(request *http.Request) (*http.Response, error) {
	what, at := trustOf(request.Context()), server(request.URL)
	found, _ := c.local.Load(at)
	local := found == true
	what.led = (what.led || request.Response != nil) && (!local || at != what.first)
	if what.led && local { // A connection that is kept is not checked again.
		return nil, &modeluri.AddressError{Addr: netip.IPv6Loopback(), Loopback: true}
	}
	if _, err := modeluri.Host(request.URL, what.led); err != nil && !what.agent {
		return nil, err
	}
	if proxy, err := c.proxyOf(request); err != nil || proxy != nil {
		what.led = false // What a proxy connects to is its decision, and it may have a loopback address itself.
	} else {
		what.direct = at
	}
	return c.transport.RoundTrip(request.WithContext(context.WithValue(request.Context(), trustKey{}, what)))
}

func (c *Client) proxyOf(request *http.Request) (*url.URL, error) {
	if c.proxy == nil || trustOf(request.Context()).agent {
		return nil, nil
	}
	return c.proxy(request)
}

// control checks an address after the name is resolved and before it is connected to, so that no later answer of
// the name server can differ.
func (c *Client) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	what := trustOf(ctx)
	if what.agent && slices.Contains(agents, target.Addr()) {
		return nil
	}
	if what.direct != "" && !what.led { // What was elsewhere at first, a name server has moved since.
		loopback := modeluri.IsLoopback(target.Addr())
		first, _ := c.local.LoadOrStore(what.direct, loopback)
		what.led = loopback && first == false
	}
	return modeluri.CheckAddress(target.Addr(), what.led)
}

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

// connected returns why a proxy did not connect to a server. Its own words are not told.
func connected(_ context.Context, proxy *url.URL, request *http.Request, response *http.Response) error {
	status := fmt.Sprintf("%d %s", response.StatusCode, http.StatusText(response.StatusCode))
	switch code := response.StatusCode; {
	case code == http.StatusOK:
		return nil
	case code == http.StatusProxyAuthRequired:
		return failure.New(failure.Denied, "%s: %s: put the user name and the password into HTTPS_PROXY", status, Show(proxy))
	case code >= 500 || code == http.StatusRequestTimeout || code == http.StatusTooManyRequests:
		return &net.OpError{Op: status, Err: fmt.Errorf("the proxy %s does not connect to %s", Show(proxy), request.Host)}
	}
	return failure.New(failure.Denied, "%s: the proxy %s does not connect to %s: allow it there, or name the host in NO_PROXY", status, Show(proxy), request.Host)
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
