// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// proxy connects to the servers that are named, or refuses with a status, and remembers what it was asked for.
type proxy struct {
	status  int
	servers map[string]string
	mutex   sync.Mutex
	asked   []string
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mutex.Lock()
	p.asked = append(p.asked, r.Method+" "+r.Host+r.Header.Get("Authorization"))
	p.mutex.Unlock()
	if p.status != 0 {
		w.WriteHeader(p.status)
		return
	}
	to, err := net.Dial("tcp", p.servers[r.Host])
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusOK)
	from, read, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	go func() { defer to.Close(); _, _ = io.Copy(to, read) }() // What was read already is in the buffer.
	_, _ = io.Copy(from, to)
	from.Close()
}

// The server's certificate is for example.com. The proxy is the only way to it.
func TestProxies(t *testing.T) {
	t.Parallel()
	server := secure(&contents{bodies: map[string][]byte{"/a": []byte("weights")}})
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	for name, each := range map[string]struct {
		// environment has ADDR for the proxy's address.
		environment, uri string
		status           int
		want             string
		asked            []string
	}{
		"by a proxy":           {environment: "HTTPS_PROXY=http://ADDR", uri: "https://example.com/a", asked: []string{"CONNECT example.com:443"}},
		"without a scheme":     {environment: "https_proxy=ADDR", uri: "https://example.com/a", asked: []string{"CONNECT example.com:443"}},
		"a trailing newline":   {environment: "HTTPS_PROXY=http://ADDR\n", uri: "SERVER/a", want: "[Invalid] HTTPS_PROXY is no URL of a proxy"},
		"a leading space":      {environment: "HTTPS_PROXY= http://ADDR", uri: "SERVER/a", want: "[Invalid] HTTPS_PROXY is no URL of a proxy"},
		"a per cent sign":      {environment: "HTTPS_PROXY=http://user:a%b-secret@ADDR", uri: "SERVER/a", want: "[Invalid] HTTPS_PROXY is no URL of a proxy"},
		"no host":              {environment: "HTTP_PROXY=http://", uri: "SERVER/a", want: "[Invalid] HTTP_PROXY is no URL of a proxy"},
		"another scheme":       {environment: "HTTPS_PROXY=ftp://ADDR", uri: "SERVER/a", want: "[Invalid] HTTPS_PROXY is no URL of a proxy"},
		"a port":               {environment: "HTTPS_PROXY=http://proxy.test:99999", uri: "SERVER/a", want: "[Invalid] HTTPS_PROXY is no URL of a proxy"},
		"digits in full width": {environment: "HTTPS_PROXY=http://ADDR", uri: "https://１６９.254.169.254/a", want: "[Refused] 169.254.169.254 is a link-local"},
		"dots of China":        {environment: "HTTPS_PROXY=http://ADDR", uri: "https://169。254。169。254/a", want: "[Refused] 169.254.169.254 is a link-local"},
		"a proxy that refuses": {environment: "HTTPS_PROXY=http://user:a-secret@ADDR", uri: "https://example.com/a", status: 403, asked: []string{"CONNECT example.com:443"},
			want: "[Denied] 403 Forbidden: the proxy http://ADDR does not connect to example.com:443: allow it there"},
		"a proxy that wants credentials": {environment: "HTTPS_PROXY=http://user:a-secret@ADDR", uri: "https://example.com/a", status: 407, asked: []string{"CONNECT example.com:443"},
			want: "[Denied] 407 Proxy Authentication Required: http://ADDR: put the user name and the password into HTTPS_PROXY"},
		"a proxy that is down": {environment: "HTTPS_PROXY=http://ADDR", uri: "https://example.com/a", status: 503, asked: []string{"CONNECT example.com:443"},
			want: "[Unreachable] https://example.com/a: 503 Service Unavailable: the proxy http://ADDR does not connect to example.com:443"},
		"a redirect in full width": {environment: "HTTPS_PROXY=http://ADDR", uri: "https://example.com/redirect", asked: []string{"CONNECT example.com:443"}, want: "[Refused] 169.254.169.254 is a link-local"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redirecting := secure(http.RedirectHandler("https://①⑥⑨.254.169.254/a", http.StatusFound))
			defer redirecting.Close()
			through := &proxy{status: each.status, servers: map[string]string{"example.com:443": address}}
			if strings.HasSuffix(each.uri, "/redirect") {
				through.servers["example.com:443"] = redirecting.Listener.Addr().String()
			}
			way := httptest.NewServer(through)
			defer way.Close()
			fill := strings.NewReplacer("ADDR", way.Listener.Addr().String(), "SERVER", server.URL).Replace
			name, value, _ := strings.Cut(each.environment, "=")
			p := newProgram(t, server, t.TempDir(), "--uri", fill(each.uri), "--retry-for", "1ms")
			p.Env = append(p.Env, name+"="+fill(value), "MODEL_TOKEN=a-secret-token")
			code, last := p.start(t).code(t), p.lastWord(t)
			if (code != 0) != (each.want != "") || each.want != "" && !strings.HasPrefix(last, fill(each.want)) || strings.Contains(last+p.output.String(), "secret") {
				t.Errorf("%d %s, want %s", code, last, fill(each.want))
			}
			through.mutex.Lock()
			defer through.mutex.Unlock()
			if !slices.Equal(through.asked, each.asked) {
				t.Errorf("the proxy is asked for %q, want %q", through.asked, each.asked)
			}
		})
	}
}
