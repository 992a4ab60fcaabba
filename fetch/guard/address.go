// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guard sends the requests of a fetch. It decides which addresses are connected to, which redirects are
// followed, and which server gets the credentials.
package guard

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
)

// metadata are the addresses outside of the link-local ranges under which clouds serve the credentials of a node:
// AWS (IPv6) and Alibaba Cloud.
var metadata = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200")}

// Prefixes of IPv6 addresses that reach an IPv4 address: NAT64 (RFC 6052), 6to4 (RFC 3056), and the deprecated
// IPv4-compatible addresses (RFC 4291).
var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	compatible = netip.MustParsePrefix("::/96")
)

// CheckAddress refuses link-local addresses (169.254.0.0/16, fe80::/10) and those of metadata services, and after a
// redirect to another host also loopback and unspecified ones. An IPv4 address within an IPv6 address is checked too.
func CheckAddress(addr netip.Addr, redirected bool) error {
	for _, each := range []netip.Addr{addr.WithZone(""), embedded(addr)} {
		switch {
		case each.IsLinkLocalUnicast(), each.IsLinkLocalMulticast(), isMetadata(each):
			return failure.New(failure.Refused,
				"%s is a link-local or metadata address, which is never connected to: use the address of the server that has the model", addr)
		case redirected && (each.IsLoopback() || each.IsUnspecified()):
			return failure.New(failure.Refused,
				"the server redirects to %s, a loopback address: use the URL of the server that has the model", addr)
		}
	}
	return nil
}

func isMetadata(addr netip.Addr) bool {
	return slices.Contains(metadata, addr)
}

// embedded returns the IPv4 address that an IPv6 address stands for, or else the address itself.
func embedded(addr netip.Addr) netip.Addr {
	addr = addr.WithZone("").Unmap()
	if addr.Is4() {
		return addr
	}
	b := addr.As16()
	switch {
	case nat64.Contains(addr), compatible.Contains(addr) && !addr.IsLoopback() && !addr.IsUnspecified():
		return netip.AddrFrom4([4]byte(b[12:16]))
	case sixToFour.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return addr
}

// numeric is a host whose last label is a number, decimal or hexadecimal: some resolvers read 2852039166 and 0xa9fea9fe as
// 169.254.169.254 (https://url.spec.whatwg.org/#ends-in-a-number-checker).
var numeric = regexp.MustCompile(`^(?:.*\.)?(?:[0-9]+|0[xX][0-9a-fA-F]*)\.?$`)

// CheckHost checks a URL's host where it is an address. A name is checked when it is resolved, which a proxy does
// where there is one.
func CheckHost(target *url.URL, redirected bool) error {
	host := target.Hostname()
	if host == "" {
		return failure.New(failure.Invalid, "the URL %s has no host: write https://host/path", Show(target))
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return CheckAddress(addr, redirected)
	}
	if numeric.MatchString(host) {
		return failure.New(failure.Refused, "the host %s is an address in an unusual form: write it as four decimal numbers", failure.Quote(host))
	}
	if redirected && isLocalhost(host) {
		return failure.New(failure.Refused, "the server redirects to %s, a loopback address: use the URL of the server that has the model", failure.Quote(host))
	}
	return nil
}

// isLocalhost is true for the names that RFC 6761 reserves for the loopback addresses.
func isLocalhost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// Show returns a URL as it may stand in a log: without user information, query and fragment, which may hold secrets.
func Show(target *url.URL) string {
	shown := url.URL{Scheme: target.Scheme, Host: target.Host, Path: target.Path, RawPath: target.RawPath}
	return failure.Quote(shown.String())
}
