// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/source"
)

const object = "models/a+b c=d&模型.bin"

// s3 starts the S3 server of "rclone serve s3", which verifies signatures.
func s3(t *testing.T) *httptest.Server {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket(t.Context(), "bucket"); err != nil {
		t.Fatal(err)
	}
	if _, err := backend.PutObject(t.Context(), "bucket", object, map[string]string{}, bytes.NewReader([]byte("weights")), 7); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(gofakes3.New(backend, gofakes3.WithV4Auth(map[string]string{"key": "good-secret"})).Server())
	t.Cleanup(server.Close)
	return server
}

func fetchS3(t *testing.T, server *httptest.Server, uri string, pairs ...string) (map[string]string, error) {
	t.Helper()
	client := guard.New(nil, guard.Options{Proxy: http.ProxyURL(nil), TLS: server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()})
	defer client.Close()
	d := &download.Downloader{Client: client, RetryFor: time.Nanosecond}
	resolved, err := source.Resolve(t.Context(), settings(uri, append(pairs, "AWS_ENDPOINT_URL", server.URL)...), d)
	if err != nil {
		return nil, err
	}
	return downloadAll(t, d, resolved)
}

func TestAnObjectOfS3(t *testing.T) {
	got, err := fetchS3(t, s3(t), "s3://bucket/"+object, "AWS_ACCESS_KEY_ID", "key", "AWS_SECRET_ACCESS_KEY", "good-secret", "AWS_REGION", "eu-central-1")
	if err != nil || !maps.Equal(got, map[string]string{"a+b c=d&模型.bin": "weights"}) {
		t.Error(got, err)
	}
}

func TestAddressingStyles(t *testing.T) {
	const endpoint = "https://oss.example.com:9000/prefix"
	for _, each := range []struct{ bucket, style, want string }{
		{"models", "", "https://oss.example.com:9000/prefix/models/a/b.bin"},
		{"models", "path", "https://oss.example.com:9000/prefix/models/a/b.bin"},
		{"models", "virtual", "https://models.oss.example.com:9000/prefix/a/b.bin"},
		{"my.models", "virtual", "https://oss.example.com:9000/prefix/my.models/a/b.bin"},
		{"models", "Virtual", "correct it"},
	} {
		got, err := source.Resolve(t.Context(), settings("s3://"+each.bucket+"/a/b.bin", "AWS_ENDPOINT_URL", endpoint, "AWS_S3_ADDRESSING_STYLE", each.style), nil)
		if err != nil {
			if !strings.HasSuffix(err.Error(), each.want) || failure.Of(err).Word != failure.Invalid {
				t.Errorf("%+v: %v", each, err)
			}
			continue
		}
		if url := item(t, got.Files[0]).URL.String(); url != each.want || got.Files[0].Name != "b.bin" {
			t.Errorf("%+v: %s", each, url)
		}
	}
}

func TestRefusalsOfS3(t *testing.T) {
	server := s3(t)
	good := []string{"AWS_ACCESS_KEY_ID", "key", "AWS_SECRET_ACCESS_KEY", "good-secret"}
	for _, each := range []struct {
		uri  string
		keys []string
		word failure.Word
		want string
	}{
		{"s3://bucket/" + object, []string{"AWS_ACCESS_KEY_ID", "key", "AWS_SECRET_ACCESS_KEY", "bad-secret"}, failure.Denied, "403 Forbidden (SignatureDoesNotMatch)"},
		{"s3://bucket/" + object, []string{"AWS_ACCESS_KEY_ID", "other", "AWS_SECRET_ACCESS_KEY", "good-secret"}, failure.Denied, "403 Forbidden (InvalidAccessKeyId)"},
		{"s3://bucket/" + object, nil, failure.Denied, "403 Forbidden"},
		{"s3://bucket/other.bin", good, failure.NotFound, "404 Not Found (NoSuchKey)"},
		{"s3://bucket2/a.bin", good, failure.NotFound, "404 Not Found (NoSuchBucket)"},
	} {
		_, err := fetchS3(t, server, each.uri, slices.Clone(each.keys)...)
		if err == nil || failure.Of(err).Word != each.word || !strings.Contains(err.Error(), each.want) || strings.Contains(err.Error(), "-secret") {
			t.Errorf("%s %v: %v", each.uri, each.keys, err)
		}
	}
}

// cut breaks the connection after some bytes.
type cut struct {
	http.ResponseWriter
	left int
}

func (c *cut) Write(content []byte) (int, error) {
	n, err := c.ResponseWriter.Write(content[:min(len(content), c.left)])
	if c.left -= n; c.left == 0 {
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

// A list has pages of 1000 objects, and a gateway may redirect to where an object is: that server gets no credentials.
func TestPagesAndRedirectsOfABucket(t *testing.T) {
	backend := s3mem.New()
	if err := backend.CreateBucket(t.Context(), "bucket"); err != nil {
		t.Fatal(err)
	}
	const objects = 1100
	for i := range objects {
		if _, err := backend.PutObject(t.Context(), "bucket", fmt.Sprintf("many/%d/a", i), map[string]string{}, strings.NewReader("a"), 1); err != nil {
			t.Fatal(err)
		}
	}
	store, lists := gofakes3.New(backend).Server(), 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/elsewhere" && r.Header.Get("Authorization") == "" && r.Header.Get("X-Amz-Security-Token") == "":
			_, _ = io.WriteString(w, "redirected")
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/7/a"):
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		default:
			if r.URL.Query().Has("list-type") {
				lists++
			}
			store.ServeHTTP(w, r)
		}
	}))
	defer server.Close()
	client := guard.New(nil, guard.Options{TLS: server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()})
	defer client.Close()
	d := &download.Downloader{Client: client, RetryFor: time.Nanosecond}
	s := settings("s3://bucket/many/", "AWS_ENDPOINT_URL", server.URL)
	s.MaxFiles, s.SizeLimit = objects, 16<<20
	resolved, err := source.Resolve(t.Context(), s, d)
	if err != nil || len(resolved.Files) != objects || lists != 2 {
		t.Fatal(len(resolved.Files), lists, err)
	}
	got, err := fetchS3(t, server, "s3://bucket/many/7/a", "AWS_ACCESS_KEY_ID", "key", "AWS_SECRET_ACCESS_KEY", "good-secret", "AWS_SESSION_TOKEN", "session")
	if err != nil || got["a"] != "redirected" {
		t.Error(got, err)
	}
}

func TestAnEndpointWithoutTLSNeedsAHash(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	client := guard.New(nil, guard.Options{Proxy: http.ProxyURL(nil)})
	defer client.Close()
	d := &download.Downloader{Client: client, RetryFor: time.Nanosecond}
	s := settings("s3://bucket/a", "AWS_ENDPOINT_URL", server.URL)
	for _, each := range []struct {
		sha256 string
		word   failure.Word
	}{{"", failure.Refused}, {hash, failure.NotFound}} {
		s.SHA256 = each.sha256
		resolved, err := source.Resolve(t.Context(), s, d)
		if err == nil {
			_, err = downloadAll(t, d, resolved)
		}
		if err == nil || failure.Of(err).Word != each.word {
			t.Error(each.sha256, err)
		}
	}
}
