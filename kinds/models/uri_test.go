// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"os"
	"strings"
	"testing"
)

// The program that fetches is tested with the same file: what is admitted can be fetched.
func TestParseAgreesWithTheFetcher(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../fetch/source/testdata/uris.txt")
	if err != nil {
		t.Fatal(err)
	}
	accepted, refused := 0, 0
	for line := range strings.Lines(string(data)) {
		answer, uri, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if uri == "" || answer == "#" {
			continue
		}
		parsed, err := Parse(uri)
		switch answer {
		case "ok":
			accepted++
			if err != nil || !parsed.IsFetched() {
				t.Errorf("%s: %+v, %v", uri, parsed, err)
			}
		case "no":
			refused++
			if err == nil {
				t.Errorf("%s is accepted as %+v", uri, parsed)
			}
		default:
			t.Fatalf("the line %q is neither ok nor no", line)
		}
	}
	if accepted < 15 || refused < 30 {
		t.Errorf("the file has %d and %d URIs", accepted, refused)
	}
}

func TestParseOfWhatIsNotFetched(t *testing.T) {
	t.Parallel()
	digest := "@sha256:" + strings.Repeat("0a", 32)
	for uri, want := range map[string]URI{
		"oci://registry.example.com/team/model" + digest:        {Scheme: Image, Image: "registry.example.com/team/model" + digest},
		"oci://registry.example.com:5000/team/model:1" + digest: {Scheme: Image, Image: "registry.example.com:5000/team/model:1" + digest},
		"oci://registry.example.com/team/model:1":               {},
		"oci://registry.example.com/team/model":                 {},
		"oci://registry.example.com/team/model@sha256:00":       {},
		"oci://Registry/team/Model" + digest:                    {},
		"oci://model@sha512:" + strings.Repeat("0a", 64):        {},
		"oci://":                {},
		"pvc://models":          {Scheme: Claim, Claim: "models"},
		"pvc://models/":         {Scheme: Claim, Claim: "models"},
		"pvc://models.v1/a/b":   {Scheme: Claim, Claim: "models.v1", Path: "a/b"},
		"pvc://models/a/b/":     {Scheme: Claim, Claim: "models", Path: "a/b"},
		"pvc://models/a b":      {Scheme: Claim, Claim: "models", Path: "a b"},
		"pvc://":                {},
		"pvc:///a":              {},
		"pvc://Models/a":        {},
		"pvc://models/../a":     {},
		"pvc://models/a/..":     {},
		"pvc://models//a":       {},
		"pvc://models/./a":      {},
		"pvc://models/a\\b":     {},
		"pvc://models/a\x00b":   {},
		"":                      {},
		"models":                {},
		"://models":             {},
		"OCI://model" + digest:  {},
		"ftp://a/b":             {},
		"file:///models/a.onnx": {},
	} {
		got, err := Parse(uri)
		if err != nil {
			got = URI{}
		}
		if got != want {
			t.Errorf("%q: %+v, %v", uri, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"https://a/b", "http://a:1/b?c#d", "s3://abc/d", "hf://a/b@" + strings.Repeat("0", 40) + "/c", "oci://a@sha256:" + strings.Repeat("0", 64), "pvc://a/b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		uri, err := Parse(text)
		if err != nil {
			return
		}
		if !strings.HasPrefix(text, uri.Scheme+"://") {
			t.Errorf("%q has the scheme %q", text, uri.Scheme)
		}
		for _, name := range []string{uri.File, uri.Path} {
			if name == ".." || strings.HasPrefix(name, "/") || strings.Contains(name, "../") && name == uri.Path {
				t.Errorf("%q leaves its directory: %+v", text, uri)
			}
		}
		if strings.Contains(uri.File, "/") && uri.Scheme == S3 {
			t.Errorf("%q has a directory in the file's name: %+v", text, uri)
		}
	})
}
