// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modeluri

import (
	"fmt"
	"net/netip"
)

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

// CheckAddress returns an *AddressError for an address that is not connected to, where led is true
// if a server has led there and not the URI alone. An IPv4 address within an IPv6 address is
// checked too.
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
		// Shorter prefixes have it elsewhere (RFC 6052, 2.2). Where the prefix is longer, these
		// bytes are zero.
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
