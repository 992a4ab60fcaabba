// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
)

// direct is the client of the program, which trusts a test server.
func direct(t *testing.T, server *httptest.Server, mirrors ...guard.Rule) *guard.Client {
	client := guard.New(mirrors, guard.Options{Proxy: http.ProxyURL(nil), TLS: trust(server)})
	t.Cleanup(client.Close)
	return client
}

func trust(server *httptest.Server) *tls.Config {
	if transport, ok := server.Client().Transport.(*http.Transport); ok && transport.TLSClientConfig != nil {
		return transport.TLSClientConfig.Clone()
	}
	return nil
}

func parse(t *testing.T, text string) *url.URL {
	t.Helper()
	target, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func get(t *testing.T, client *guard.Client, text string, plain bool) (string, error) {
	t.Helper()
	request := guard.Request{URL: parse(t, text), Plain: plain, Authorization: "Bearer secret", Header: http.Header{"Range": {"bytes=1-"}}}
	response, err := client.Get(t.Context(), request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// echo answers with what the server knows of a request.
func echo(w http.ResponseWriter, r *http.Request) {
	io.WriteString(w, r.URL.Path+" authorization="+r.Header.Get("Authorization")+" referer="+r.Header.Get("Referer")+
		" range="+r.Header.Get("Range")+" encoding="+r.Header.Get("Accept-Encoding"))
}

func TestRedirectsToTheSameServerKeepCredentials(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/end", echo)
	mux.Handle("/a", http.RedirectHandler("/b", http.StatusFound))
	mux.Handle("/b", http.RedirectHandler("end", http.StatusTemporaryRedirect))
	server := httptest.NewTLSServer(mux)
	defer server.Close()
	body, err := get(t, direct(t, server), server.URL+"/a?token=secret", false)
	if err != nil || body != "/end authorization=Bearer secret referer= range=bytes=1- encoding=identity" {
		t.Error(body, err)
	}
}

func TestRefusedRedirects(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(echo))
	defer plain.Close()
	other := httptest.NewTLSServer(http.HandlerFunc(echo))
	defer other.Close()
	for _, each := range []struct{ name, location, want string }{
		{"another scheme", plain.URL + "/", "less safe"},
		{"another scheme without network", "ftp://example.com/", "less safe"},
		{"a file", "file:///etc/passwd", "less safe"},
		{"opaque", "https:example.com", "no URL"},
		{"link-local", "https://169.254.169.254/latest", "link-local"},
		{"link-local within IPv6", "https://[::ffff:169.254.169.254]/", "link-local"},
		{"link-local as a number", "https://2852039166/", "unusual form"},
		{"loopback", other.URL + "/", "loopback"},
		{"loopback by name", strings.Replace(other.URL, "127.0.0.1", "localhost", 1), "loopback"},
		{"a user name", "https://user:password@example.com/", "user name"},
		{"a loop", "/redirect", "more than 10 redirects"},
	} {
		t.Run(each.name, func(t *testing.T) {
			server := httptest.NewTLSServer(http.RedirectHandler(each.location, http.StatusFound))
			defer server.Close()
			_, err := get(t, direct(t, server), server.URL+"/redirect", true)
			if err == nil || failure.Of(err).Word != failure.Refused || !strings.Contains(err.Error(), each.want) {
				t.Error(err)
			}
		})
	}
}

func TestTooManyRedirects(t *testing.T) {
	requests := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		http.Redirect(w, r, r.URL.Path+"a", http.StatusFound)
	}))
	defer server.Close()
	if _, err := get(t, direct(t, server), server.URL+"/", false); err == nil || !strings.Contains(err.Error(), "more than 10 redirects") || requests != 11 {
		t.Error(err, requests)
	}
}

func TestPlainHTTP(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(echo))
	defer secure.Close()
	plain := httptest.NewServer(http.HandlerFunc(echo))
	defer plain.Close()
	client := direct(t, secure)
	if _, err := get(t, client, plain.URL, false); err == nil || failure.Of(err).Word != failure.Refused {
		t.Error("http:// without a hash:", err)
	}
	if _, err := get(t, client, plain.URL, true); err != nil {
		t.Error("http:// with a hash:", err)
	}
	toMirror := direct(t, secure, guard.Rule{Prefix: secure.URL, Replacement: plain.URL})
	if _, err := get(t, toMirror, secure.URL, false); err == nil || failure.Of(err).Word != failure.Refused {
		t.Error("a mirror without TLS and without a hash:", err)
	}
}

// names connects every name to one of the servers, as a name server would.
func names(servers map[string]*httptest.Server) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(address)
		return (&net.Dialer{}).DialContext(ctx, network, servers[host].Listener.Addr().String())
	}
}

func TestCredentialsStayWithTheirServer(t *testing.T) {
	end := httptest.NewTLSServer(http.HandlerFunc(echo))
	defer end.Close()
	begin := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	}))
	defer begin.Close()
	config := trust(begin)
	config.ServerName = "example.com" // The test server's certificate has this name.
	client := guard.New(nil, guard.Options{Proxy: http.ProxyURL(nil), TLS: config, Dial: names(map[string]*httptest.Server{"begin.test": begin, "end.test": end, "sub.begin.test": end})})
	defer client.Close()
	for _, to := range []string{"https://end.test/x", "https://sub.begin.test/x", "https://end.test:444/x"} {
		body, err := get(t, client, "https://begin.test/?to="+url.QueryEscape(to), false)
		if err != nil || body != "/x authorization= referer= range=bytes=1- encoding=identity" {
			t.Error(to, body, err)
		}
	}
}

func TestARedirectIsRewrittenToo(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/cdn/x", echo)
	mux.Handle("/a", http.RedirectHandler("https://cdn.example/x", http.StatusFound))
	server := httptest.NewTLSServer(mux)
	defer server.Close()
	body, err := get(t, direct(t, server, guard.Rule{Prefix: "https://cdn.example", Replacement: server.URL + "/cdn"}), server.URL+"/a", false)
	if err != nil || !strings.HasPrefix(body, "/cdn/x") {
		t.Error(body, err)
	}
}

// A Location with a space in its query is followed, as curl does.
func TestALocationWithASpace(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/b", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Query().Get("name")) })
	mux.HandleFunc("/a", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/b?name=a model.bin")
		w.WriteHeader(http.StatusFound)
	})
	server := httptest.NewTLSServer(mux)
	defer server.Close()
	if body, err := get(t, direct(t, server), server.URL+"/a", false); err != nil || body != "a model.bin" {
		t.Error(body, err)
	}
}
