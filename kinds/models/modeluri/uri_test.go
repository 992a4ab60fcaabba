// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modeluri

import (
	"net/netip"
	"strings"
	"testing"
)

// Each promise of docs/models.md and docs/security.md has a row.
func TestCheckAddress(t *testing.T) {
	for want, rows := range map[verdict][]string{
		never: {
			"169.254.169.254", "169.254.0.0", "169.254.170.2", "169.254.170.23", "169.254.42.42", "169.254.0.23", "fe80::1", "fe80::1%eth0", "fe80::a9fe:a9fe",
			// Clouds.
			"fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "168.63.129.16", "192.0.0.192", "fd00:c1::a9fe:a9fe", "100.100.100.200", "fd00:100::100:200",
			"fd00:a9fe:a9fe::1", "fd00:42::42", "100.96.0.96",
			// What is no destination.
			"224.0.0.1", "ff02::1", "255.255.255.255", "192.0.0.8", "192.0.0.171", "100::1", "100:0:0:1::1", "2001:5::1", "2001:10::1",
			// IPv4 within IPv6: mapped, compatible, SIIT, NAT64, 6to4, Teredo (server, and client
			// with inverted bits), ISATAP.
			"::ffff:169.254.169.254", "::ffff:100.100.100.200", "::169.254.169.254", "::ffff:0:169.254.169.254", "64:ff9b::a9fe:a9fe",
			"64:ff9b:1::a9fe:a9fe", "64:ff9b:1:abcd::a9fe:a9fe", "64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1:ab:00a9:fea9:fe00:0", "64:ff9b:1:a9:fe:a9fe::", "2002:a9fe:a9fe::1",
			"2001:0:a9fe:a9fe::1", "2001:0:102:304:0:0:5601:5601", "2001:db8::5efe:a9fe:a9fe", "2001:db8::200:5efe:169.254.169.254", "64:ff9b::168.63.129.16",
		},
		owner: {
			"127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::127.0.0.1", "0.0.0.0", "0.1.2.3", "::", "2002:7f00:1::", "2001:db8::5efe:7f00:1",
		},
		anyone: {
			"10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "100.100.100.201", "100.96.0.95", "fd00::1", "fd00:ec3::254", "fc00::1", "198.18.0.1", "240.0.0.1", "192.0.2.1", "2001:db8::1",
			"169.253.255.255", "169.255.0.0", "168.63.129.17", "192.0.0.1", "192.0.0.9", "192.0.1.0", "8.8.8.8", "2606:4700::1", "64:ff9b::808:808", "64:ff9b:1::a00:1",
			"64:ff9b:1:abcd::10.0.0.1", "2002:808:808::1", "2001:0:808:808::f7f7:f7f7", "2001:db8::5efe:808:808", "2001:4860:4860::8888", "::ffff:10.0.0.1",
		},
	} {
		for _, text := range rows {
			addr := netip.MustParseAddr(text)
			if err := CheckAddress(addr, false); (err != nil) != (want == never) {
				t.Errorf("%s: %v", text, err)
			}
			if err := CheckAddress(addr, true); (err != nil) != (want != anyone) || IsLoopback(addr) != (want == owner) {
				t.Errorf("%s, where a server led: %v", text, err)
			}
		}
	}
}

// The expectations are those of Python's fnmatch.fnmatchcase, and of a directory in "hf download".
func TestPatterns(t *testing.T) {
	for _, each := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.safetensors", "model.safetensors", true},
		{"*.safetensors", "a/b/model.safetensors", true},
		{"*.safetensors", "model.safetensors.index.json", false},
		{"onnx/*", "onnx/a/b", true},
		{"onnx/", "onnx/a/b", true},
		{"onnx/", "onnx", false},
		{"onnx", "onnx/a", false},
		{"config.json", "config.json", true},
		{"config.json", "configXjson", false},
		{"model-0000?-of-*", "model-00001-of-00002.bin", true},
		{"[a-c]?[!d]", "b/e", true},
		{"[a-c]?[!d]", "bxd", false},
		{"[]x]", "]", true},
		{"[!]x]", "]", false},
		{"[^x]", "^", true},
		{"a[b", "a[b", true},
		{"[a-", "[a-", true},
		{"[a-]", "-", true},
		{"[[]", "[", true},
		{`a\*`, `a\b`, true},
		{"*模型*", "a/模型.bin", true},
		{"A", "a", false},
		{"(a|b)+$", "(a|b)+$", true},
	} {
		pattern, err := ParsePattern(each.pattern)
		if err != nil || pattern.Match(each.name) != each.want {
			t.Errorf("%s with %s: %v", each.pattern, each.name, err)
		}
	}
	for _, text := range []string{"", strings.Repeat("a", 129), "a\nb", "[z-a]"} {
		if _, err := ParsePattern(text); err == nil {
			t.Errorf("%q is no pattern", text)
		}
	}
}
