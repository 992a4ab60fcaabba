// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modeluri

import (
	"net/netip"
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

// addresses are those of IANA's registries of special-purpose addresses, and what clouds serve
// outside of the link-local ranges to instances alone: credentials, and other services of the node.
// The column "destination" of the registries decides: what is none is not connected to. But
// clusters and laboratories do use private, documentation and reserved addresses.
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
