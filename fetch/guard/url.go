// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

// checkURL returns a URL that is about to be requested with its host as it is connected to. A name is checked when it is resolved, which a
// proxy does where there is one.
func checkURL(target *url.URL, plain bool) (*url.URL, error) {
	switch {
	case target.Scheme == "http" && !plain:
		return nil, failure.New(failure.Refused, "%s is not encrypted: use https://, or set spec.model.sha256 of one file of https://, http:// or s3://", showServer(target))
	case target.Scheme != "http" && target.Scheme != "https":
		return nil, failure.New(failure.Refused, "%s is neither an https:// nor an http:// URL", showServer(target))
	case target.User != nil:
		return nil, failure.New(failure.Invalid, "%s has a user name: put it into the Secret of spec.model.credentials", showServer(target))
	case target.Hostname() == "":
		return nil, failure.New(failure.Invalid, "a URL has no host: write https://host/path")
	}
	checked, err := modeluri.Host(target, false)
	if _, ok := errors.AsType[*modeluri.AddressError](err); ok {
		return nil, failure.New(failure.Refused, "%w", err)
	}
	if err != nil {
		return nil, failure.New(failure.Refused, "%s %w", showServer(target), err)
	}
	return checked, nil
}

// Show returns a URL as it may stand in a log: without user information, query and fragment, which may hold secrets.
func Show(target *url.URL) string {
	shown := url.URL{Scheme: target.Scheme, Host: target.Host, Path: target.Path, RawPath: target.RawPath}
	return shown.String()
}

// showServer returns the server of a URL that another server has chosen: the rest of it may be what that one was sent.
func showServer(target *url.URL) string {
	return Show(&url.URL{Scheme: target.Scheme, Host: target.Host})
}

// server returns the scheme, host and port of a URL.
func server(target *url.URL) string {
	return target.Scheme + "://" + net.JoinHostPort(strings.ToLower(target.Hostname()), port(target))
}

func port(target *url.URL) string {
	if given := target.Port(); given != "" {
		return given
	}
	return map[string]string{"https": "443", "http": "80"}[target.Scheme]
}

// agents are the addresses of the agent of EKS Pod Identity, which gives a pod the credentials of its own service account
// (https://docs.aws.amazon.com/eks/latest/userguide/pod-id-how-it-works.html). The metadata service is at others.
var agents = []netip.Addr{netip.MustParseAddr("169.254.170.23"), netip.MustParseAddr("fd00:ec2::23")}

// CheckAgent refuses every URL but that of the agent.
func CheckAgent(target *url.URL) error {
	addr, err := netip.ParseAddr(target.Hostname())
	if err != nil || !slices.Contains(agents, addr) || target.Scheme != "http" || port(target) != "80" || target.User != nil {
		return failure.New(failure.Refused, "AWS_CONTAINER_CREDENTIALS_FULL_URI is not the agent of EKS Pod Identity: it is http://%s/v1/credentials, or http://[%s]/v1/credentials",
			agents[0], agents[1])
	}
	return nil
}

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
