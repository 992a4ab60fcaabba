// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

// Rule is a mirror that the operator's administrator has set: it replaces the beginning of a URL.
type Rule struct{ Prefix, Replacement string }

// Rules are the mirrors, of which the one with the longest prefix applies.
type Rules []Rule

// ParseRule reads a rule PREFIX=REPLACEMENT. Both are https://, http://, hf:// or s3:// URLs, or their beginnings after the
// scheme. The first "=" separates them. Its error has no part of the text: a URL may have a password.
func ParseRule(text string) (Rule, error) {
	prefix, replacement, found := strings.Cut(text, "=")
	if !found || !hasScheme(prefix) || !hasScheme(replacement) {
		return Rule{}, failure.New(failure.Invalid, "--mirror is not PREFIX=REPLACEMENT with two URLs, such as https://huggingface.co=https://mirror.example.com")
	}
	if _, authority, _ := strings.Cut(replacement, "://"); strings.Contains(strings.SplitN(authority, "/", 2)[0], "@") {
		return Rule{}, failure.New(failure.Invalid, "--mirror has a replacement with a user name: put it into the Secret of spec.model.credentials")
	}
	return Rule{Prefix: usual(prefix), Replacement: replacement}, nil
}

// unusual are the forms of a host that mean the same as without them: the port of the scheme, and the dot of the root.
var unusual = regexp.MustCompile(`^(?:(https://[^/?#]*?)\.?(?::(?:443)?)?|(http://[^/?#]*?)\.?(?::(?:80)?)?)((?:[/?#].*)?)$`)

// usual returns a URL with its scheme and host as rules compare them.
func usual(text string) string {
	parts := unusual.FindStringSubmatch(text)
	if parts == nil {
		return text
	}
	return strings.ToLower(parts[1]+parts[2]) + parts[3]
}

func hasScheme(text string) bool {
	scheme, _, found := strings.Cut(text, "://")
	return found && slices.Contains([]string{modeluri.HTTPS, modeluri.HTTP, modeluri.Hub, modeluri.S3}, scheme)
}

// Match returns the rule for a URL: one whose prefix it begins with, and continues with a new segment. https://a.example covers
// https://a.example/b and not https://a.example.com.
func (r Rules) Match(text string) (longest Rule, found bool) {
	for _, rule := range r {
		rest, begins := strings.CutPrefix(text, rule.Prefix)
		covered := begins && (rest == "" || strings.HasSuffix(rule.Prefix, "/") || rest[0] == '/')
		if covered && len(rule.Prefix) > len(longest.Prefix) {
			longest, found = rule, true
		}
	}
	return longest, found
}

// Text returns a URL, rewritten once.
func (r Rules) Text(text string) string {
	rule, found := r.Match(text)
	if !found {
		return text
	}
	return rule.Replacement + strings.TrimPrefix(text, rule.Prefix)
}

// URL returns a URL, rewritten once. Its host is compared in lower case, without the port of its scheme and the dot of the root.
func (r Rules) URL(from *url.URL) (*url.URL, error) {
	lower := *from
	lower.Host = strings.ToLower(from.Host)
	text := usual(lower.String())
	rewritten := r.Text(text)
	if rewritten == text {
		return &lower, nil
	}
	to, err := url.Parse(rewritten)
	if err != nil {
		return nil, failure.New(failure.Invalid, "--mirror makes no URL of %s: correct its replacement", lower.Host)
	}
	return to, nil
}
