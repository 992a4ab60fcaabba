// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/source"
)

// resolved returns how many files a model has, or the error.
func resolved(t *testing.T, handler http.HandlerFunc, uri string) string {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	defer server.Close()
	client := guard.New(nil, guard.Options{Proxy: http.ProxyURL(nil), TLS: server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()})
	defer client.Close()
	s := settings(uri, "HF_ENDPOINT", server.URL, "AWS_ENDPOINT_URL", server.URL)
	model, err := source.Resolve(t.Context(), s, &download.Downloader{Client: client, RetryFor: time.Nanosecond})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d files", len(model.Files))
}

// The first page has one object, and the page that the token stands for another one.
func TestTheEndOfABucketsList(t *testing.T) {
	const truncated, whole, token = "<IsTruncated>true</IsTruncated>", "<IsTruncated>false</IsTruncated>", "<NextContinuationToken>t</NextContinuationToken>"
	const one = "1 files"
	const noEnd = "[Refused] the bucket's list has more than it shows"
	for page, want := range map[string]string{
		whole:                            one,
		whole + "<KeyCount>1</KeyCount>": one,
		whole + "<KeyCount>0</KeyCount>": noEnd,
		whole + "<KeyCount>2</KeyCount>": noEnd,
		truncated:                        noEnd,
		"":                               noEnd,
		truncated + token:                "2 files",
		whole + token:                    "2 files",
		token:                            "2 files",
		truncated + "<NextMarker>m/a</NextMarker>":                        noEnd,
		truncated + "<NextContinuationToken></NextContinuationToken>":     noEnd,
		truncated + "<NextContinuationToken>same</NextContinuationToken>": "[TooBig] the model has more than",
		whole + "<CommonPrefixes><Prefix>m/b/</Prefix></CommonPrefixes>":  noEnd,
		"<IsTruncated>perhaps</IsTruncated>":                              "[Invalid] the bucket's server answers with something that is not of S3",
	} {
		got := resolved(t, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Query().Get("continuation-token") {
			case "":
			case "same":
				_, _ = io.WriteString(w, "<ListBucketResult><Contents><Key>m/b</Key><Size>1</Size></Contents>"+page+"</ListBucketResult>")
				return
			default:
				_, _ = io.WriteString(w, "<ListBucketResult><Contents><Key>m/b</Key><Size>1</Size></Contents><IsTruncated>false</IsTruncated></ListBucketResult>")
				return
			}
			if r.Method == http.MethodGet {
				_, _ = io.WriteString(w, "<ListBucketResult><Contents><Key>m/a</Key><Size>1</Size></Contents>"+page+"</ListBucketResult>")
			}
		}, "s3://bucket/m/")
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", page, got, want)
		}
	}
}

// The same of a hub: the first page has one file, and any other one more.
func TestTheEndOfAHubsList(t *testing.T) {
	const one, two = "1 files", "2 files"
	const noURL, noList = "continues its list at something that is no URL", "is no list of files"
	for link, want := range map[string]string{
		"":                             one,
		"<?page=2>; rel=\"next\"":      two,
		"<?page=2>; rel=next":          two,
		"<?page=2>;rel='next'":         two,
		"<?page=2>; REL=\"NEXT\"":      two,
		"<?page=2>; rel=\"next last\"": two,
		"<?page=2>; rel=\"last next\"; title=\"a, b; c\"":  two,
		"<?page=2,3>; rel=\"next\"":                        two,
		"<?page=9>; rel=\"last\", <?page=2>; rel=next":     two,
		"<?page=9>; rel=\"last\"":                          one,
		"<?page=9>; rel=\"prev\"; title=\"rel=next, <x>\"": one,
		", ,":                        one,
		"<?page=2>; rel=\"next":      noURL,
		"<?page=2; rel=\"next\"":     noURL,
		"?page=2; rel=\"next\"":      noURL,
		"next":                       noURL,
		"<>; rel=\"next\"":           noURL,
		"<http://h/2>; rel=\"next\"": noURL,
	} {
		got := resolved(t, func(w http.ResponseWriter, r *http.Request) {
			name := "b"
			if !r.URL.Query().Has("page") {
				w.Header().Set("Link", link)
				name = "a"
			}
			fmt.Fprintf(w, `[{"type":"file","path":%q,"size":1,"oid":%q}]`, name, commitID)
		}, "hf://org/name@"+commitID)
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", link, got, want)
		}
	}
	for body, want := range map[string]string{"%s": one, "%s\n ": one, "%s[]": noList, "%s{}": noList, "%s%[1]s": noList, "%s,": noList, "[": noList} {
		got := resolved(t, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, body, fmt.Sprintf(`[{"type":"file","path":"a","size":1,"oid":%q}]`, commitID))
		}, "hf://org/name@"+commitID)
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}
