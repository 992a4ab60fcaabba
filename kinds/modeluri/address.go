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

// verdict says whether an address is connected to.
type verdict int

const (
	// anyone may lead to the address: the URI, and servers.
	anyone verdict = iota
	// owner is an address of the pod itself: the URI may have it, and no server may lead to it.
	owner
	// never is an address that is not connected to.
	never
)

// address is a row of the table below. The longest prefix decides.
type address struct {
	prefix  netip.Prefix
	verdict verdict
	// what is the name of the registry, or of the cloud.
	what string
}

// addresses are those of IANA's registries of special-purpose addresses, and what clouds serve outside of the link-local
// ranges to instances alone: credentials, and other services of the node. The column "destination" of the registries decides:
// what is none is not connected to. But clusters and laboratories do use private, documentation and reserved addresses.
//
//	https://www.iana.org/assignments/iana-ipv4-special-registry
//	https://www.iana.org/assignments/iana-ipv6-special-registry
var addresses = table(
	"0.0.0.0/8", owner, "this network (RFC 791); Linux connects to the pod itself",
	"10.0.0.0/8", anyone, "private (RFC 1918)",
	"100.64.0.0/10", anyone, "shared (RFC 6598)",
	"127.0.0.0/8", owner, "loopback (RFC 1122)",
	"169.254.0.0/16", never, "link-local (RFC 3927): metadata of AWS, Azure, Google, OpenStack, Tencent, Huawei and others",
	"172.16.0.0/12", anyone, "private (RFC 1918)",
	"192.0.0.0/24", never, "protocol assignments (RFC 6890); 192.0.0.192 is metadata of Oracle",
	"192.0.0.0/29", anyone, "IPv4 service continuity (RFC 7335)",
	"192.0.0.9/32", anyone, "PCP anycast (RFC 7723)",
	"192.0.0.10/32", anyone, "TURN anycast (RFC 8155)",
	"192.0.2.0/24", anyone, "documentation (RFC 5737)",
	"192.168.0.0/16", anyone, "private (RFC 1918)",
	"198.18.0.0/15", anyone, "benchmarking (RFC 2544)",
	"198.51.100.0/24", anyone, "documentation (RFC 5737)",
	"203.0.113.0/24", anyone, "documentation (RFC 5737)",
	"224.0.0.0/4", never, "multicast (RFC 1112)",
	"240.0.0.0/4", anyone, "reserved (RFC 1112); pods of GKE and EKS have such addresses",
	"255.255.255.255/32", never, "limited broadcast (RFC 8190)",
	"::/128", owner, "unspecified (RFC 4291); Linux connects to the pod itself",
	"::1/128", owner, "loopback (RFC 4291)",
	"100::/64", never, "discard-only (RFC 6666)",
	"100:0:0:1::/64", never, "dummy (RFC 9780)",
	"2001::/23", never, "protocol assignments (RFC 2928)",
	"2001::/32", anyone, "Teredo (RFC 4380), judged by the IPv4 addresses in it",
	"2001:1::/64", anyone, "anycast of PCP, TURN and DNS-SD (RFC 7723, 8155, 9665)",
	"2001:2::/48", anyone, "benchmarking (RFC 5180)",
	"2001:3::/32", anyone, "AMT (RFC 7450)",
	"2001:4:112::/48", anyone, "AS112 (RFC 7535)",
	"2001:20::/28", anyone, "ORCHIDv2 (RFC 7343)",
	"2001:30::/28", anyone, "drones (RFC 9374)",
	"2001:db8::/32", anyone, "documentation (RFC 3849)",
	"3fff::/20", anyone, "documentation (RFC 9637)",
	"5f00::/16", anyone, "segment routing (RFC 9602)",
	"fc00::/7", anyone, "unique local (RFC 4193)",
	"fe80::/10", never, "link-local (RFC 4291)",
	"ff00::/8", never, "multicast (RFC 4291)",
	"fd00:ec2::/32", never, "AWS: metadata fd00:ec2::254, EKS Pod Identity fd00:ec2::23",
	"fd20:ce::254/128", never, "Google: metadata",
	"168.63.129.16/32", never, "Azure: WireServer",
	"fd00:c1::a9fe:a9fe/128", never, "Oracle: metadata",
	"100.100.100.200/32", never, "Alibaba Cloud: metadata",
	"fd00:100::100:200/128", never, "Alibaba Cloud: metadata",
	"fd00:a9fe:a9fe::1/128", never, "Akamai (Linode): metadata",
	"fd00:42::42/128", never, "Scaleway: metadata",
	"100.96.0.96/32", never, "Volcengine: metadata",
)

func table(cells ...any) []address {
	var out []address
	for i := 0; i < len(cells); i += 3 {
		out = append(out, address{netip.MustParsePrefix(cells[i].(string)), cells[i+1].(verdict), cells[i+2].(string)})
	}
	return out
}

// AddressError is an address that is not connected to.
type AddressError struct {
	Addr netip.Addr
	// Loopback is true for the pod itself, which a server may not lead to.
	Loopback bool
}

func (e *AddressError) Error() string {
	if e.Loopback {
		return fmt.Sprintf("the server leads to %s, a loopback address: use the URL of the server that has the model", e.Addr)
	}
	return fmt.Sprintf("%s is a link-local or metadata address, which is never connected to: use the address of the server that has the model", e.Addr)
}

// CheckAddress returns an *AddressError for an address that is not connected to, where led is true if a server has led there and
// not the URI alone. An IPv4 address within an IPv6 address is checked too.
func CheckAddress(addr netip.Addr, led bool) error {
	found := judge(addr)
	for _, each := range embedded(addr) {
		found = max(found, judge(each))
	}
	if found == never || found == owner && led {
		return &AddressError{Addr: addr, Loopback: found == owner}
	}
	return nil
}

// IsLoopback is true for the addresses of the pod itself.
func IsLoopback(addr netip.Addr) bool {
	return CheckAddress(addr, true) != nil && CheckAddress(addr, false) == nil
}

func judge(addr netip.Addr) verdict {
	addr, longest, found := addr.WithZone("").Unmap(), -1, anyone
	for _, row := range addresses {
		if row.prefix.Bits() > longest && row.prefix.Contains(addr) {
			longest, found = row.prefix.Bits(), row.verdict
		}
	}
	return found
}

// Prefixes of IPv6 addresses that reach an IPv4 address.
var (
	compatible = netip.MustParsePrefix("::/96")           // IPv4-compatible, deprecated (RFC 4291)
	translated = netip.MustParsePrefix("::ffff:0:0:0/96") // SIIT (RFC 2765)
	nat64      = netip.MustParsePrefix("64:ff9b::/96")    // RFC 6052
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")  // RFC 8215
	teredo     = netip.MustParsePrefix("2001::/32")       // RFC 4380
	sixToFour  = netip.MustParsePrefix("2002::/16")       // RFC 3056
)

// embedded returns the IPv4 addresses that an IPv6 address stands for.
func embedded(addr netip.Addr) (out []netip.Addr) {
	addr = addr.WithZone("").Unmap()
	if addr.Is4() {
		return nil
	}
	b := addr.As16()
	v4 := func(at ...int) { out = append(out, netip.AddrFrom4([4]byte{b[at[0]], b[at[1]], b[at[2]], b[at[3]]})) }
	switch {
	case compatible.Contains(addr) && judge(addr) == anyone, translated.Contains(addr), nat64.Contains(addr):
		v4(12, 13, 14, 15)
	case localNAT64.Contains(addr):
		v4(12, 13, 14, 15)
		// Shorter prefixes have it elsewhere (RFC 6052, 2.2). Where the prefix is longer, these bytes are zero.
		for _, at := range [][]int{{6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}} {
			if b[at[0]] != 0 {
				v4(at...)
			}
		}
	case sixToFour.Contains(addr):
		v4(2, 3, 4, 5)
	case teredo.Contains(addr): // The server, and the client, whose bits are inverted.
		v4(4, 5, 6, 7)
		out = append(out, netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}))
	}
	if isISATAP(b) {
		v4(12, 13, 14, 15)
	}
	return out
}

// isISATAP is true for the identifiers of ISATAP (RFC 5214), which are below any prefix.
func isISATAP(b [16]byte) bool { return b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe }

var (
	// label is a part of a host name. Names of services have underscores.
	label = regexp.MustCompile(`^[A-Za-z0-9_-]{1,63}$`)
	// numeric is a host whose last label is a number, decimal or hexadecimal: some resolvers read 2852039166 and 0xa9fea9fe as
	// 169.254.169.254 (https://url.spec.whatwg.org/#ends-in-a-number-checker).
	numeric = regexp.MustCompile(`^(?:.*\.)?(?:[0-9]+|0[xX][0-9a-fA-F]*)\.?$`)
)

// maxHost is the maximum length of a host name (RFC 1035).
const maxHost = 253

// Host returns a URL with its host as it is connected to: in ASCII, as IDNA maps it (RFC 5895), because a proxy gets that. So
// what is checked is what is used. Its error says why no server can have the host or the port, or is an *AddressError, where
// led is true if a server has led there.
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
