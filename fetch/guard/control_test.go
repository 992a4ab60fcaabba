// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// A name that resolves to a loopback address is known to be one only when it is connected to. A server of the user's own URI may have
// one, and stays allowed; one that a list or a redirect names may not, also where it is of the same name as before.
func TestNoServerLeadsToLoopback(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/a", http.RedirectHandler("/b", http.StatusFound))
	mux.HandleFunc("/b", func(http.ResponseWriter, *http.Request) {})
	server := httptest.NewServer(mux)
	defer server.Close()
	here, err := url.Parse(server.URL + "/a")
	if err != nil {
		t.Fatal(err)
	}
	get := func(client *Client, led bool) error {
		response, err := client.Get(t.Context(), Request{URL: here, Plain: true, Led: led})
		if err == nil {
			response.Body.Close()
		}
		return err
	}
	client := New(nil, Options{})
	defer client.Close()
	if err := get(client, true); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Error("a page of a list is fetched from a loopback address:", err)
	}
	if err := get(client, false); err != nil {
		t.Error("the URI's own server, and a redirect of it:", err)
	}
	if err := get(client, true); err != nil {
		t.Error("the next page of the URI's own server:", err)
	}
	client.local.Store("http://models.test:80", true)
	elsewhere := httptest.NewServer(http.RedirectHandler("http://models.test/b", http.StatusFound))
	defer elsewhere.Close()
	if here, err = url.Parse(elsewhere.URL); err != nil {
		t.Fatal(err)
	}
	if err := get(client, false); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Error("a redirect of another server to one that is known to be at a loopback address:", err)
	}
	// The name was another address at first: what control sees when the redirect to the same host is dialed.
	ctx := context.WithValue(t.Context(), trustKey{}, trust{direct: "http://models.test:80", led: true})
	if err := client.control(ctx, "tcp", "127.0.0.1:80", nil); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Error("a redirect to the same name, now at a loopback address:", err)
	}
}

func TestAProxyMayHaveALoopbackAddress(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	proxy, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := New(nil, Options{Proxy: http.ProxyURL(proxy)})
	defer client.Close()
	response, err := client.Get(t.Context(), Request{URL: &url.URL{Scheme: "http", Host: "models.example.com", Path: "/a"}, Plain: true, Led: true})
	if err != nil {
		t.Fatal("the connection to the proxy counts as led there:", err)
	}
	response.Body.Close()
}

// Only the agent's own two addresses are exempt, and only for requests to it.
func TestTheAgentIsTheOnlyException(t *testing.T) {
	client := New(nil, Options{})
	agent := context.WithValue(t.Context(), trustKey{}, trust{agent: true})
	for address, allowed := range map[string]bool{"169.254.170.23:80": true, "[fd00:ec2::23]:80": true, "169.254.169.254:80": false, "169.254.170.2:80": false, "[fd00:ec2::254]:80": false} {
		if err := client.control(agent, "tcp", address, nil); (err == nil) != allowed {
			t.Error(address, err)
		}
		if err := client.control(t.Context(), "tcp", address, nil); err == nil {
			t.Error(address, "is connected to by another request")
		}
	}
	for text, allowed := range map[string]bool{
		"http://169.254.170.23/v1/credentials": true, "http://[fd00:ec2::23]/v1/credentials": true, "http://169.254.170.23:80/": true, "http://169.254.170.23:8080/": false,
		"https://169.254.170.23/": false, "http://169.254.170.2/": false, "http://localhost/": false, "http://user@169.254.170.23/": false,
	} {
		target, err := url.Parse(text)
		if err != nil || (CheckAgent(target) == nil) != allowed {
			t.Error(text, err)
		}
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
		if (server(a) == server(b)) != want {
			t.Error(pair)
		}
	}
}

// A name that was somewhere else at first does not become the pod itself by a later attempt.
func TestANameThatMovesToLoopback(t *testing.T) {
	for first, then := range map[string]map[string]bool{
		"192.0.2.1:80": {"192.0.2.2:80": true, "127.0.0.1:80": false, "[::1]:80": false, "0.0.0.0:80": false},
		"127.0.0.1:80": {"[::1]:80": true, "127.0.0.1:80": true, "192.0.2.1:80": true},
	} {
		for later, allowed := range then {
			client := New(nil, Options{})
			ctx := context.WithValue(t.Context(), trustKey{}, trust{direct: "http://models.test:80"})
			if err := client.control(ctx, "tcp", first, nil); err != nil {
				t.Error(first, err)
			}
			if err := client.control(ctx, "tcp", later, nil); (err == nil) != allowed {
				t.Errorf("%s, and then %s: %v", first, later, err)
			}
		}
	}
}
