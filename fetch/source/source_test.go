// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/source"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

const hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// environment returns variables from pairs.
func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func settings(uri string, pairs ...string) source.Settings {
	return source.Settings{Argument: modeluri.Argument{URI: uri, SizeLimit: 1 << 20}, Getenv: environment(pairs...), MaxFiles: 100, Hide: func(...string) {}}
}

func TestURIs(t *testing.T) {
	for _, each := range []struct{ uri, sha256, name, url string }{
		{uri: "https://models.example.com/bert.tar.zst", name: "bert.tar.zst", url: "https://models.example.com/bert.tar.zst"},
		{uri: "https://models.example.com/a/b%20c.bin?token=x", name: "b c.bin", url: "https://models.example.com/a/b%20c.bin?token=x"},
		{uri: "HTTPS://models.example.com/a", name: "a", url: "https://models.example.com/a"},
		{uri: "http://models.example.com/a", sha256: hash, name: "a", url: "http://models.example.com/a"},
		{uri: "s3://bucket/path/to/a+b c%20.bin", name: "a+b c%20.bin", url: "https://bucket.s3.us-east-1.amazonaws.com/path/to/a%2Bb%20c%2520.bin"},
		{uri: "s3://with.dots/a~b?c#d", name: "a~b?c#d", url: "https://s3.us-east-1.amazonaws.com/with.dots/a~b%3Fc%23d"},
	} {
		s := settings(each.uri)
		s.SHA256 = each.sha256
		model, err := source.Resolve(t.Context(), s, nil)
		if err != nil || len(model.Files) != 1 || !model.Archives {
			t.Errorf("%s: %v, %v", each.uri, model, err)
			continue
		}
		if file := item(t, model.Files[0]); model.Files[0].Name != each.name || file.URL.String() != each.url || file.Plain != (each.sha256 != "") || file.Authorization != "" {
			t.Errorf("%s: %q %s", each.uri, model.Files[0].Name, file.URL)
		}
	}
}

// The webhook's rules are tested with the same file.
func TestURIsOfTheFile(t *testing.T) {
	file, err := os.ReadFile("testdata/uris.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for line := range strings.Lines(string(file)) {
		want, uri, found := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if want == "" || want == "#" {
			continue
		}
		if seen[want]++; !found || want != "ok" && want != "no" {
			t.Fatalf("a line that begins with neither ok nor no: %q", line)
		}
		s := settings(uri)
		if strings.HasPrefix(uri, "http://") {
			s.SHA256 = hash
		}
		_, err := source.Resolve(t.Context(), s, offline()) // A hub is requested, and refuses with another word.
		if accepted := err == nil || strings.Contains(err.Error(), "no network"); accepted != (want == "ok") {
			t.Errorf("%q: %v, want %s", uri, err, want)
		}
	}
	if seen["ok"] < 20 || seen["no"] < 40 {
		t.Error(seen)
	}
}

// The error of each invalid URI, which no request is sent for.
func TestInvalidURIs(t *testing.T) {
	for _, each := range []struct{ uri, want string }{
		{"", "no scheme"},
		{"oci://image@sha256:0", "is mounted and never fetched"},
		{"pvc://claim/path", "is mounted and never fetched"},
		{"http://models.example.com/a", "needs spec.model.sha256"},
		{"https://user:password@models.example.com/a", "has a user name"},
		{"hf://org/name@main", `"main" is a branch`},
	} {
		_, err := source.Resolve(t.Context(), settings(each.uri), nil)
		if err == nil || failure.Of(err).Word != failure.Invalid || !strings.Contains(err.Error(), each.want) || strings.Contains(err.Error(), "password") {
			t.Errorf("%s: %v, want %q", each.uri, err, each.want)
		}
	}
}

func TestInvalidHashes(t *testing.T) {
	for uri, sha256 := range map[string]string{"https://a.test/a": hash[1:], "https://b.test/a": "sha256:" + hash, "hf://org/name@" + commitID: hash} {
		s := settings(uri)
		s.SHA256 = sha256
		if _, err := source.Resolve(t.Context(), s, nil); err == nil || failure.Of(err).Word != failure.Invalid {
			t.Error(uri, err)
		}
	}
}

// Tools of Windows print a hash in upper case.
func TestAHashInUpperCase(t *testing.T) {
	s := settings("https://a.test/a")
	s.SHA256 = strings.ToUpper(hash)
	if model, err := source.Resolve(t.Context(), s, nil); err != nil || item(t, model.Files[0]).Hash.Want != hash {
		t.Error(model, err)
	}
}

func TestCredentials(t *testing.T) {
	for _, each := range []struct {
		uri         string
		environment []string
		header, err string
	}{
		{uri: "https://a.test/a", environment: []string{"MODEL_TOKEN", "t"}, header: "Bearer t"},
		{uri: "https://a.test/a", environment: []string{"MODEL_USERNAME", "u", "MODEL_PASSWORD", "p"}, header: "Basic dTpw"},
		{uri: "https://a.test/a", environment: []string{"HF_TOKEN", "t", "AWS_ACCESS_KEY_ID", "k"}},
		{uri: "https://a.test/a", environment: []string{"MODEL_TOKEN", "t", "MODEL_USERNAME", "u"}, err: "remove one of them"},
		{uri: "https://a.test/a", environment: []string{"MODEL_PASSWORD", "secret"}, err: "without MODEL_USERNAME"},
		{uri: "https://a.test/a", environment: []string{"MODEL_TOKEN", "secret\n"}, err: "line break"},
		{uri: "s3://bucket/a", environment: []string{"AWS_ACCESS_KEY_ID", "secret"}, err: "add the other"},
		{uri: "s3://bucket/a", environment: []string{"AWS_ACCESS_KEY_ID", "secret\n", "AWS_SECRET_ACCESS_KEY", "secret"}, err: "line break"},
		{uri: "s3://bucket/a", environment: []string{"AWS_REGION", "../x"}, err: "AWS_REGION is no region"},
		{uri: "s3://bucket/a", environment: []string{"AWS_ENDPOINT_URL", "minio:9000"}, err: "AWS_ENDPOINT_URL is no URL"},
		{uri: "hf://org/name@" + commitID, environment: []string{"HF_ENDPOINT", "https://user:secret@hub.test"}, err: "HF_ENDPOINT"},
	} {
		model, err := source.Resolve(t.Context(), settings(each.uri, each.environment...), nil)
		if each.err != "" {
			if err == nil || !strings.Contains(err.Error(), each.err) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v: %v", each.environment, err)
			}
			continue
		}
		if err != nil || item(t, model.Files[0]).Authorization != each.header {
			t.Errorf("%v: %v %v", each.environment, model, err)
		}
	}
}

func TestTheRegionsOfAmazon(t *testing.T) {
	for region, want := range map[string]string{"eu-central-1": "https://bucket.s3.eu-central-1.amazonaws.com/a", "cn-north-1": "https://bucket.s3.cn-north-1.amazonaws.com.cn/a"} {
		model, err := source.Resolve(t.Context(), settings("s3://bucket/a", "AWS_REGION", region), nil)
		if err != nil || item(t, model.Files[0]).URL.String() != want {
			t.Error(model, err)
		}
	}
	s := settings("s3://public/a")
	s.Mirrors = guard.Rules{{Prefix: "s3://public", Replacement: "s3://copy"}}
	if model, err := source.Resolve(t.Context(), s, nil); err != nil || item(t, model.Files[0]).URL.Host != "copy.s3.us-east-1.amazonaws.com" {
		t.Error(model, err)
	}
}

func FuzzURI(f *testing.F) {
	for _, uri := range []string{"https://a.test/b", "s3://bucket/a b", "http://a.test/%2e%2e", "hf://a/b@" + commitID + "/c", "https://user@a.test/b?c#d"} {
		f.Add(uri, true)
	}
	f.Fuzz(func(t *testing.T, uri string, hashed bool) {
		if strings.HasPrefix(strings.ToLower(uri), "hf://") {
			uri = strings.Replace(uri, "@"+commitID, "@main", 1) // Nothing is to be requested.
		}
		s := settings(uri)
		if hashed {
			s.SHA256 = hash
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		model, err := source.Resolve(ctx, s, offline())
		if err != nil {
			if word := failure.Of(err).Word; word != failure.Invalid && word != failure.Interrupted && word != failure.Refused {
				t.Errorf("%q: %v", uri, err)
			}
			return
		}
		name, file := model.Files[0].Name, item(t, model.Files[0])
		if len(model.Files) != 1 || strings.ContainsAny(name, "/\x00\\") || name == ".." || name == "." || file.URL.User != nil ||
			file.URL.Scheme != "https" && (file.URL.Scheme != "http" || !hashed) {
			t.Errorf("%q becomes %q %s", uri, name, file.URL)
		}
	})
}
