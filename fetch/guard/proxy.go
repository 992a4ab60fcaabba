// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

func (c *Client) proxyOf(request *http.Request) (*url.URL, error) {
	if c.proxy == nil || trustOf(request.Context()).agent {
		return nil, nil
	}
	return c.proxy(request)
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
