// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// A name that resolves to a loopback address is known to be one only when it is connected to.
func TestTheMarkOfARedirectReachesTheDialer(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	client := New(nil, Options{Proxy: http.ProxyURL(nil)})
	defer client.Close()
	here, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.transport.RoundTrip(request.WithContext(client.mark(request, true))); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Error("a redirect is connected to a loopback address:", err)
	}
	response, err := client.Get(t.Context(), Request{URL: here, Plain: true})
	if err != nil {
		t.Fatal("without a redirect:", err)
	}
	response.Body.Close()
}

func TestAProxyMayHaveALoopbackAddress(t *testing.T) {
	client := New(nil, Options{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "127.0.0.1:3128"})})
	request := httptest.NewRequest(http.MethodGet, "https://models.example.com/", http.NoBody)
	if marked, _ := client.mark(request, true).Value(redirectedKey{}).(bool); marked {
		t.Error("the connection to the proxy counts as redirected")
	}
}

func TestSameServer(t *testing.T) {
	for pair, want := range map[[2]string]bool{
		{"https://a", "https://a:443/x"}:    true,
		{"https://a", "https://A"}:          true,
		{"http://a", "http://a:80"}:         true,
		{"https://a", "http://a"}:           false,
		{"https://a", "https://a:444"}:      false,
		{"https://a", "https://b.a"}:        false,
		{"http://a:443", "https://a:443"}:   false,
		{"https://a.test", "https://a.tes"}: false,
	} {
		a, _ := url.Parse(pair[0])
		b, _ := url.Parse(pair[1])
		if sameServer(a, b) != want {
			t.Error(pair)
		}
	}
}
