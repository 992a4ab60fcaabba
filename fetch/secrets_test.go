// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// mark is in every secret of these tests, so often that each part of a secret of 6 bytes has a whole one.
const mark = "q7Z"

func secret(name string) string {
	return strings.Repeat(mark, 12) + name + "/+=;" + strings.Repeat(mark, 12)
}

// places are where a server puts what it was sent: whole answers, in which ECHO stands for that.
var places = map[string]string{
	"the reason of a status":      "HTTP/1.1 500 ECHO\r\n\r\n",
	"a final reason":              "HTTP/1.1 404 ECHO\r\n\r\n",
	"no HTTP":                     "ECHO\r\n\r\n",
	"a header without a colon":    "HTTP/1.1 200 OK\r\nECHO\r\n\r\n",
	"a header's name":             "HTTP/1.1 200 OK\r\nX ECHO: a\r\n\r\n",
	"the path of a location":      "HTTP/1.1 302 Found\r\nLocation: http://other.test/ECHO\r\n\r\n",
	"the host of a location":      "HTTP/1.1 302 Found\r\nLocation: https://ECHO/a\r\n\r\n",
	"the user of a location":      "HTTP/1.1 302 Found\r\nLocation: https://ECHO@other.test/a\r\n\r\n",
	"a location of loopback":      "HTTP/1.1 302 Found\r\nLocation: https://127.0.0.2/ECHO\r\n\r\n",
	"a location's scheme":         "HTTP/1.1 302 Found\r\nLocation: ECHO:a\r\n\r\n",
	"a loop":                      "HTTP/1.1 302 Found\r\nLocation: ?ECHO\r\n\r\n",
	"the hub's error code":        "HTTP/1.1 401 Unauthorized\r\nX-Error-Code: ECHO\r\nContent-Length: 0\r\n\r\n",
	"the code of S3":              "HTTP/1.1 403 Forbidden\r\n\r\n<Error><Code>ECHO</Code><Message>ECHO</Message></Error>",
	"the region of S3":            "HTTP/1.1 400 Bad Request\r\nX-Amz-Bucket-Region: ECHO\r\n\r\n<Error><Code>a</Code></Error>",
	"the body's region":           "HTTP/1.1 400 Bad Request\r\n\r\n<Error><Code>a</Code><Region>ECHO</Region></Error>",
	"Retry-After":                 "HTTP/1.1 503 Service Unavailable\r\nRetry-After: ECHO\r\n\r\n",
	"a length":                    "HTTP/1.1 200 OK\r\nContent-Length: ECHO\r\n\r\n",
	"a transfer encoding":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: ECHO\r\n\r\n",
	"a chunk":                     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nECHO\r\n",
	"a trailer":                   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n[\r\n0\r\nECHO\r\n\r\n",
	"a content encoding":          "HTTP/1.1 200 OK\r\nContent-Encoding: ECHO\r\nContent-Length: 5\r\n\r\na",
	"a name in a list":            "HTTP/1.1 200 OK\r\n\r\n[{\"type\":\"file\",\"path\":\"../ECHO\",\"size\":1,\"oid\":\"ECHO\"}]",
	"the next page":               "HTTP/1.1 200 OK\r\nLink: <https://127.0.0.2/ECHO>; rel=\"next\"\r\n\r\n[]",
	"text where a list should be": "HTTP/1.1 200 OK\r\n\r\nECHO",
}

// echo answers with an answer of places.
func echo(answer string, pad int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer connection.Close()
		_, encoded, _ := strings.Cut(r.Header.Get("Authorization"), "Basic ")
		basic, _ := base64.StdEncoding.DecodeString(encoded)
		sent := strings.Join([]string{strings.Repeat("p", pad), r.Header.Get("Authorization"), r.Header.Get("X-Amz-Security-Token"), string(basic), r.URL.RawQuery}, " ")
		_, _ = connection.Write([]byte(strings.ReplaceAll(answer, "ECHO", strings.TrimSpace(sent))))
	})
}

// Every byte that leaves the process is searched, after each kind of failure, with each kind of credentials: the log, and the
// termination message, which becomes the status and events. A name of 170 bytes before the secret makes messages cut within it.
func TestNoSecretLeavesTheProcess(t *testing.T) {
	t.Parallel()
	const commit = "hf://org/name@0123456789abcdef0123456789abcdef01234567"
	kinds := 0
	for place, answer := range places {
		for _, each := range []struct {
			name, uri string
			pad       int
			env       []string
		}{
			{"a token", "SERVER/a", 0, []string{"MODEL_TOKEN", secret("token")}},
			{"a password", "SERVER/a", 170, []string{"MODEL_USERNAME", "user", "MODEL_PASSWORD", secret("password")}},
			{"a query", "SERVER/a?a=1&token=" + strings.Repeat(mark, 20) + "%2B", 180, nil},
			{"keys of S3", "s3://bucket/a", 0, []string{"AWS_ACCESS_KEY_ID", "key", "AWS_SECRET_ACCESS_KEY", secret("key"), "AWS_SESSION_TOKEN", strings.TrimSpace(secret("session"))}},
			{"a token of the hub", commit, 175, []string{"HF_TOKEN", secret("hub")}},
		} {
			kinds++
			t.Run(place+", "+each.name, func(t *testing.T) {
				t.Parallel()
				server := secure(echo(answer, each.pad))
				defer server.Close()
				out := fetchWith(t, server, append(each.env, "HF_ENDPOINT", server.URL, "AWS_ENDPOINT_URL", server.URL), "--uri", strings.Replace(each.uri, "SERVER", server.URL, 1))
				if strings.Contains(out, mark) || out == "" {
					t.Error(out)
				}
			})
		}
	}
	for _, each := range []struct {
		args, env []string
	}{
		{args: []string{"--uri", "https://user:" + strings.Repeat(mark, 9) + "@models.test/a"}},
		{args: []string{"--uri", "https://models.test:99999/a?token=" + strings.Repeat(mark, 9)}},
		{args: []string{"--uri", "SERVER/a", "--mirror", "x=https://user:" + strings.Repeat(mark, 9) + "@mirror.test"}},
		{args: []string{"--uri", "SERVER/a", "--mirror", "https://a=https://user:" + strings.Repeat(mark, 9) + "@mirror.test"}},
		{args: []string{"--uri", "SERVER/a", "--mirror", "SERVER=https://mirror.test/%zz?token=" + strings.Repeat(mark, 9)}},
		{args: []string{"--uri", commit}, env: []string{"HF_ENDPOINT", "https://user:" + strings.Repeat(mark, 9) + "@hub.test"}},
		{args: []string{"--uri", "s3://bucket/a"}, env: []string{"AWS_ENDPOINT_URL", "https://user:" + strings.Repeat(mark, 9) + "@s3.test"}},
		{args: []string{"--uri", "SERVER/a"}, env: []string{"MODEL_TOKEN", secret("token") + "\n"}},
		{args: []string{"--uri", "s3://bucket/a"}, env: []string{"AWS_SECRET_ACCESS_KEY", secret("key")}},
		{args: []string{"--uri", "https://models.test/a", "--models=[{\"uri\":\"https://models.test/a?a=1\\u0026token=" + strings.Repeat(mark, 9) + "\"}"}},
	} {
		kinds++
		server := secure(&contents{})
		for i := range each.args {
			each.args[i] = strings.ReplaceAll(each.args[i], "SERVER", server.URL)
		}
		if out := fetchWith(t, server, each.env, each.args...); strings.Contains(out, mark) || out == "" {
			t.Error(out)
		}
		server.Close()
	}
	if kinds < 64 {
		t.Error("only", kinds, "kinds of failure")
	}
}

// fetchWith runs the program in this process with an environment, and returns every byte that leaves it.
func fetchWith(t *testing.T, server *httptest.Server, pairs []string, args ...string) string {
	t.Helper()
	env := map[string]string{}
	for pair := range slices.Chunk(pairs, 2) {
		env[pair[0]] = pair[1]
	}
	_, log, last := runHere(t, trusting(server), env, t.TempDir(), args...)
	return log + last
}

// The names of a certificate are the server's words.
func TestACertificateWritesNoLine(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"a\n[NotFound] forged\x1b[31m", strings.Repeat("long", 1000)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	server := secure(&contents{})
	defer server.Close()
	server.TLS.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Skip("this version of Go reads no such certificate:", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	server.Client().Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
	out := fetchWith(t, server, nil, "--uri", server.URL+"/a")
	if strings.Contains(out, "\n[NotFound]") || strings.Contains(out, "\x1b") || !strings.Contains(out, "[Refused] ") || !strings.Contains(out, "SSL_CERT_DIR") || len(out) > 3000 {
		t.Error(fmt.Sprint(len(out)), out)
	}
}
