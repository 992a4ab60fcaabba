// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/source"
)

// listOf is a page with objects, whose tags are as they are written.
func listOf(objects ...[3]string) string {
	out := "<ListBucketResult><IsTruncated>false</IsTruncated>"
	for _, each := range objects {
		out += fmt.Sprintf("<Contents><Key>%s</Key><Size>%s</Size><ETag>%s</ETag></Contents>", each[0], each[1], strings.ReplaceAll(each[2], `"`, "&quot;"))
	}
	return out + "</ListBucketResult>"
}

// A bucket's list knows its objects: neither what they begin with, nor the encoding that they were
// stored with, makes one something else.
func TestObjectsThatLookLikePages(t *testing.T) {
	for _, content := range []string{`<div align="center">`, "<!-- a card -->", "<p>", "<html><body>"} {
		for _, encoding := range []string{"", "aws-chunked", "none", "utf-8", "gzip"} {
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Query().Has("list-type"):
					_, _ = io.WriteString(w, listOf([3]string{"m/README.md", fmt.Sprint(len(content)), `"1"`}))
				default:
					w.Header().Set("ETag", `"1"`)
					w.Header().Set("Content-Encoding", encoding)
					_, _ = io.WriteString(w, content)
				}
			}))
			for _, uri := range []string{"s3://bucket/m/", "s3://bucket/m/README.md"} {
				if got, err := fetchS3(t, server, uri); err != nil || got["README.md"] != content {
					t.Errorf("%s, %s, %q: %q %v", uri, content, encoding, got, err)
				}
			}
			server.Close()
		}
	}
}

// What a proxy changes on the way is not signed; a server that verifies signatures has the rest.
func TestHeadersThatAProxyChanges(t *testing.T) {
	store := s3(t)
	var mutex sync.Mutex
	var signed []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		_, after, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
		names, _, _ := strings.Cut(after, ",")
		signed = append(signed, strings.Split(names, ";")...)
		mutex.Unlock()
		r.Header.Set("Accept-Encoding", "gzip,gfe")
		r.Header.Del("If-Match")
		r.Header.Set("User-Agent", "proxy")
		r.Header.Set("Range", "bytes=0-6")
		store.Config.Handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	if _, err := fetchS3(t, server, "s3://bucket/models/", "AWS_ACCESS_KEY_ID", "key", "AWS_SECRET_ACCESS_KEY", "good-secret", "AWS_SESSION_TOKEN", "session"); err != nil && !strings.Contains(err.Error(), "206") {
		t.Error(err)
	}
	for _, name := range signed {
		if name != "host" && !strings.HasPrefix(name, "x-amz-") {
			t.Error(name, "is signed")
		}
	}
	if !slices.Contains(signed, "x-amz-security-token") || !slices.Contains(signed, "x-amz-date") {
		t.Error(signed)
	}
}

// However a list writes a tag, the object with it is fetched, and another one is not, whether the
// server knows If-Match or not.
func TestTagsOfAList(t *testing.T) {
	for tag, conditions := range map[string]string{`"1"`: `"1"`, `1`: `"1"`, `W/"1"`: "", `W/1`: "", "": ""} {
		for _, now := range []string{`"1"`, `W/"1"`, `1`, `"2"`} {
			var asked []string
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Has("list-type") {
					_, _ = io.WriteString(w, listOf([3]string{"m/a", "7", tag}))
					return
				}
				if r.Method == http.MethodGet {
					asked = append(asked, r.Header.Get("If-Match"))
				}
				w.Header().Set("ETag", now)
				_, _ = io.WriteString(w, "weights")
			}))
			_, err := fetchS3(t, server, "s3://bucket/m/")
			server.Close()
			replaced := tag != "" && now == `"2"`
			if replaced != (err != nil) || replaced && (failure.Of(err).Word != failure.Refused || !strings.Contains(err.Error(), "the object was replaced while it was fetched")) {
				t.Errorf("%s in the list, and %s: %v", tag, now, err)
			}
			if len(asked) == 0 || asked[0] != conditions {
				t.Errorf("%s: If-Match %q, want %q", tag, asked, conditions)
			}
		}
	}
}

// Each object is one request, which has its checksum, and folders without objects are there.
func TestAFolderBeginsAtOnce(t *testing.T) {
	var asked []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("list-type") {
			_, _ = io.WriteString(w, listOf([3]string{"r/", "0", ""}, [3]string{"r/a", "1", `"1"`}, [3]string{"r/b", "1", `"1"`}, [3]string{"r/e/", "0", ""}, [3]string{"r/e/1/", "0", ""}, [3]string{"r/f/1/x/", "0", ""}))
			return
		}
		asked = append(asked, r.Method+" "+r.URL.Path)
		w.Header().Set("ETag", `"1"`)
		_, _ = io.WriteString(w, "x")
	}))
	defer server.Close()
	client := guard.New(nil, guard.Options{Proxy: http.ProxyURL(nil), TLS: server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()})
	defer client.Close()
	d := &download.Downloader{Client: client, RetryFor: time.Nanosecond}
	s := settings("s3://bucket/r/", "AWS_ENDPOINT_URL", server.URL)
	model, err := source.Resolve(t.Context(), s, d)
	if err != nil || len(asked) != 0 || !slices.Equal(model.Directories, []string{"e", "e/1", "f/1/x"}) {
		t.Fatal(asked, model.Directories, err)
	}
	if got, err := downloadAll(t, d, model); err != nil || !maps.Equal(got, map[string]string{"a": "x", "b": "x"}) {
		t.Error(got, err)
	}
	if want := []string{"GET /bucket/r/a", "GET /bucket/r/b"}; !slices.Equal(asked, want) {
		t.Errorf("%q", asked)
	}
	s.Include = []string{"a", "f/*"}
	if model, err := source.Resolve(t.Context(), s, d); err != nil || !slices.Equal(model.Directories, []string{"f/1/x"}) {
		t.Error(model.Directories, err)
	}
}

// Each refusal has its own way out, for an object and for one of a folder, whose HEAD has no body.
func TestTheWaysOutOfS3(t *testing.T) {
	for _, each := range []struct {
		status        int
		code, message string
		headers       map[string]string
		want          string
	}{
		{status: 403, code: "InvalidObjectState", want: "the object is archived: restore it"},
		{status: 400, code: "KMS.DisabledException", want: "enable the key"},
		{status: 400, code: "KMS.KMSInvalidStateException", want: "enable the key"},
		{status: 403, code: "AccessDenied", message: "User is not authorized to perform: kms:Decrypt on the resource", want: "enable the key"},
		{status: 400, code: "InvalidRequest", message: "The object was stored using a form of Server Side Encryption. The correct parameters must be provided to retrieve the object.", want: "(SSE-C)"},
		{status: 400, code: "ExpiredToken", want: "the temporary credentials have expired"},
		{status: 307, code: "TemporaryRedirect", headers: map[string]string{"X-Amz-Bucket-Region": "us-east-1", "Location": "https://a.test/b"}, want: "the bucket is new"},
		{status: 307, code: "TemporaryRedirect", headers: map[string]string{"X-Amz-Bucket-Region": "eu-west-1", "Location": "https://a.test/b"}, want: "set AWS_REGION to eu-west-1"},
		{status: 400, code: "AuthorizationHeaderMalformed", headers: map[string]string{"X-Amz-Bucket-Region": "us-east-1"}, want: "the server refuses the region that it names"},
		{status: 400, code: "AuthorizationHeaderMalformed", message: "</Message><Region>eu-west-1</Region><Message>", want: "set AWS_REGION to eu-west-1"},
		{status: 301, code: "PermanentRedirect", headers: map[string]string{"X-Amz-Bucket-Region": "eu-west-1"}, want: "set AWS_REGION to eu-west-1"},
		{status: 403, code: "RequestTimeTooSkewed", want: "the clock of the node"},
		{status: 403, code: "AccessDenied", want: "check the keys AWS_*"},
		{status: 412, code: "PreconditionFailed", want: "the object was replaced"},
	} {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("list-type") {
				_, _ = io.WriteString(w, listOf([3]string{"m/a", "7", `"1"`}))
				return
			}
			for name, value := range each.headers {
				w.Header().Set(name, value)
			}
			w.WriteHeader(each.status)
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", each.code, each.message)
		}))
		for _, uri := range []string{"s3://bucket/m/a", "s3://bucket/m/"} {
			_, err := fetchS3(t, server, uri)
			if err == nil || !strings.Contains(err.Error(), "("+each.code+")") || !strings.Contains(err.Error(), each.want) {
				t.Errorf("%s %s: %v, want %s", uri, each.code, err, each.want)
			}
		}
		server.Close()
	}
	list := func(page string) string {
		return resolved(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page) }, "s3://bucket/m/")
	}
	for _, page := range []string{listOf([3]string{"m/w", "1", ""}, [3]string{"m/w/a", "1", ""}), listOf([3]string{"m/w/", "1", ""}), listOf([3]string{"m/../a", "1", ""})} {
		if got := list(page); !strings.HasPrefix(got, "[Refused] ") || strings.Contains(got, "HF_ENDPOINT") || strings.Contains(got, "--exclude") || !strings.Contains(got, "AWS_ENDPOINT_URL") {
			t.Error(got)
		}
	}
}

// Keys that no header can have are told as such.
func TestATokenWithAControlCharacter(t *testing.T) {
	for token, want := range map[string]string{"a\x01b": "has a control character", "a\x7fb": "has a control character", "a\x00b": "has a control character", "a\n": "has a line break"} {
		_, err := source.Resolve(t.Context(), settings("https://a.test/a", "MODEL_TOKEN", token), nil)
		if err == nil || failure.Of(err).Word != failure.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", token, err)
		}
	}
}

// The way out of an empty folder is asked for once, and without it the failure is the same.
func TestAFolderBesideAnEmptyOne(t *testing.T) {
	for page, want := range map[string]string{
		listOf([3]string{"m/1/", "0", ""}, [3]string{"m/2/a", "1", ""}, [3]string{"m/3/", "0", ""}, [3]string{"m/b", "1", ""}): ", but below m/2/",
		listOf([3]string{"m/1/", "0", ""}):     "",
		"<Error><Code>SlowDown</Code></Error>": "",
	} {
		lists := 0
		got := resolved(t, func(w http.ResponseWriter, r *http.Request) {
			lists++
			switch {
			case r.URL.Query().Get("prefix") == "m/1/":
				_, _ = io.WriteString(w, listOf([3]string{"m/1/", "0", ""}, [3]string{"m/1/x/", "0", ""}))
				return
			case strings.Contains(page, "<Error>"):
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			_, _ = io.WriteString(w, page)
		}, "s3://bucket/m/1/")
		if got != "[NotFound] the bucket has no file below m/1/"+want+": check spec.model.uri" || lists != 2 {
			t.Errorf("%s: %d lists, %s", page, lists, got)
		}
	}
}
