// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modeluri

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

var (
	// label is a part of a host name. Names of services have underscores.
	label = regexp.MustCompile(`^[A-Za-z0-9_-]{1,63}$`)
	// numeric is a host whose last label is a number, decimal or hexadecimal: some resolvers read 2852039166 and 0xa9fea9fe as
	// 169.254.169.254 (https://url.spec.whatwg.org/#ends-in-a-number-checker).
	numeric = regexp.MustCompile(`^(?:.*\.)?(?:[0-9]+|0[xX][0-9a-fA-F]*)\.?$`)
)

// maxHost is the maximum length of a host name (RFC 1035).
const maxHost = 253

// Host returns a URL with its host as it is connected to: in ASCII, as IDNA maps it (RFC 5895),
// because a proxy gets that. So what is checked is what is used. Its error says why no server can
// have the host or the port, or is an *AddressError, where led is true if a server has led there.
func Host(target *url.URL, led bool) (*url.URL, error) {
	host, port := target.Hostname(), target.Port()
	if number, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || number == 0) {
		return nil, errors.New("has a port that is not between 1 and 65535")
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return target, CheckAddress(addr, led)
	}
	ascii, err := toASCII(host)
	if err != nil {
		return nil, err
	}
	if led && isLocalhost(ascii) {
		return nil, &AddressError{Addr: netip.IPv6Loopback(), Loopback: true}
	}
	if ascii == host {
		return target, nil
	}
	out := *target
	if out.Host = ascii; port != "" {
		out.Host = net.JoinHostPort(ascii, port)
	}
	if addr, err := netip.ParseAddr(ascii); err == nil { // Such as that of digits in full width.
		return &out, CheckAddress(addr, led)
	}
	return &out, nil
}

func toASCII(host string) (string, error) {
	if strings.ContainsFunc(host, func(r rune) bool { return r >= 0x80 }) {
		ascii, err := idna.Lookup.ToASCII(host)
		if err != nil {
			return "", errors.New("has a host that no name server can have; write it in ASCII")
		}
		if _, err := netip.ParseAddr(ascii); err == nil {
			return ascii, nil
		}
		host = ascii
	}
	if numeric.MatchString(host) {
		return "", fmt.Errorf("has the host %.40s, an address in an unusual form; write it as four decimal numbers", host)
	}
	name := strings.TrimSuffix(host, ".")
	for part := range strings.SplitSeq(name, ".") {
		if !label.MatchString(part) || len(name) > maxHost {
			return "", errors.New("has a host that no name server can have: names have letters, digits, - and _, at most 63 bytes between dots, and 253 in all")
		}
	}
	return host, nil
}

// isLocalhost is true for the names that RFC 6761 reserves for the loopback addresses, and those
// that kubelet writes into /etc/hosts.
func isLocalhost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || host == "ip6-localhost" || host == "ip6-loopback"
}
