// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modeluri

import (
	"errors"
	"net/url"
	"testing"
)

// The names of /etc/hosts for the pod itself are loopback addresses, whatever resolves them.
func TestNamesOfThePodItself(t *testing.T) {
	for host, local := range map[string]bool{
		"localhost": true, "a.localhost": true, "LOCALHOST.": true, "ip6-localhost": true, "ip6-loopback": true, "IP6-Localhost.": true,
		"ip6-localhost.example.com": false, "localhost.example.com": false, "ip6-allnodes": false,
	} {
		for _, led := range []bool{false, true} {
			_, err := Host(&url.URL{Scheme: "https", Host: host}, led)
			if _, ok := errors.AsType[*AddressError](err); ok != (local && led) {
				t.Errorf("%s, led there %t: %v", host, led, err)
			}
		}
	}
}
