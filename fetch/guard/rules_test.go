// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
)

func TestRules(t *testing.T) {
	rules := guard.Rules{
		{Prefix: "https://huggingface.co", Replacement: "https://hf-mirror.example"},
		{Prefix: "https://huggingface.co/big", Replacement: "https://big.example/hub"},
		{Prefix: "https://cdn.example/", Replacement: "https://mirror.example/cdn/"},
	}
	for from, want := range map[string]string{
		"https://huggingface.co/a/b?x=y":     "https://hf-mirror.example/a/b?x=y",
		"https://huggingface.co":             "https://hf-mirror.example",
		"HTTPS://HuggingFace.co/a":           "https://hf-mirror.example/a",
		"https://huggingface.co:443/a":       "https://hf-mirror.example/a",
		"https://huggingface.co./a":          "https://hf-mirror.example/a",
		"https://huggingface.co.:443":        "https://hf-mirror.example",
		"https://huggingface.co:/a":          "https://hf-mirror.example/a",
		"https://huggingface.co.:":           "https://hf-mirror.example",
		"https://huggingface.co:444/a":       "https://huggingface.co:444/a",
		"https://huggingface.co/big/b":       "https://big.example/hub/b",
		"https://huggingface.co/bigger":      "https://hf-mirror.example/bigger",
		"https://huggingface.co.evil.test/a": "https://huggingface.co.evil.test/a",
		"https://cdn.example/a%2Fb%2B":       "https://mirror.example/cdn/a%2Fb%2B",
		"http://huggingface.co/a":            "http://huggingface.co/a",
		"https://other.example/a":            "https://other.example/a",
	} {
		parsed, err := url.Parse(from)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := rules.URL(parsed); err != nil || got.String() != want {
			t.Errorf("%s becomes %v, %v; want %s", from, got, err, want)
		}
	}
}

func TestParseRule(t *testing.T) {
	rule, err := guard.ParseRule("hf://=https://mirror.example/a=b")
	if err != nil || rule.Prefix != "hf://" || rule.Replacement != "https://mirror.example/a=b" {
		t.Errorf("got %v, %v", rule, err)
	}
	if rule, err := guard.ParseRule("https://A.example:443/B=https://c"); err != nil || rule.Prefix != "https://a.example/B" {
		t.Errorf("got %v, %v", rule, err)
	}
	for _, text := range []string{"", "a=b", "https://a", "https://a=b", "=https://b", "file:///a=https://b", "https://a=https://user:b@c", "https://secret"} {
		if _, err := guard.ParseRule(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q is no mirror", text)
		}
	}
}
