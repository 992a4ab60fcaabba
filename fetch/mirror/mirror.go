// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mirror rewrites URLs to the mirrors that the operator's administrator has set. It decides alone, without I/O.
package mirror

import (
	"net/url"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
)

// Rule replaces the beginning of a URL.
type Rule struct{ Prefix, Replacement string }

// Rules are the mirrors, of which the one with the longest prefix applies.
type Rules []Rule

// Parse reads a rule PREFIX=REPLACEMENT. Both are https://, http://, hf:// or s3:// URLs, or their beginnings after the
// scheme. The first "=" separates them.
func Parse(text string) (Rule, error) {
	prefix, replacement, found := strings.Cut(text, "=")
	if !found || !hasScheme(prefix) || !hasScheme(replacement) {
		return Rule{}, failure.New(failure.Invalid,
			"--mirror %s is not PREFIX=REPLACEMENT with two URLs, such as https://huggingface.co=https://mirror.example.com", failure.Quote(text))
	}
	return Rule{Prefix: prefix, Replacement: replacement}, nil
}

func hasScheme(text string) bool {
	for _, scheme := range []string{"https://", "http://", "hf://", "s3://"} {
		if strings.HasPrefix(text, scheme) {
			return true
		}
	}
	return false
}

// Match returns the rule for a URL.
func (r Rules) Match(text string) (Rule, bool) {
	var longest Rule
	for _, rule := range r {
		if rule.covers(text) && len(rule.Prefix) > len(longest.Prefix) {
			longest = rule
		}
	}
	return longest, longest.Prefix != ""
}

// covers is true if the text begins with the prefix and continues with a new segment: https://a.example covers
// https://a.example/b and not https://a.example.com.
func (r Rule) covers(text string) bool {
	rest, found := strings.CutPrefix(text, r.Prefix)
	return found && (rest == "" || strings.HasSuffix(r.Prefix, "/") || rest[0] == '/')
}

// Text returns a URL, rewritten once.
func (r Rules) Text(text string) string {
	rule, found := r.Match(text)
	if !found {
		return text
	}
	return rule.Replacement + strings.TrimPrefix(text, rule.Prefix)
}

// URL returns a URL, rewritten once. The scheme and host are compared in lower case.
func (r Rules) URL(from *url.URL) (*url.URL, error) {
	lower := *from
	lower.Scheme, lower.Host = strings.ToLower(from.Scheme), strings.ToLower(from.Host)
	text := lower.String()
	rewritten := r.Text(text)
	if rewritten == text {
		return &lower, nil
	}
	to, err := url.Parse(rewritten)
	if err != nil {
		return nil, failure.New(failure.Invalid, "--mirror makes no URL of %s: correct its replacement", failure.Quote(from.Redacted()))
	}
	return to, nil
}
