// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"net/netip"
	"net/url"
	"testing"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
)

func TestCheckAddress(t *testing.T) {
	const always, redirected, never = "always", "redirected", "never"
	for address, refused := range map[string]string{
		"169.254.169.254":        always,
		"169.254.0.0":            always,
		"::ffff:169.254.169.254": always,
		"::169.254.169.254":      always,
		"64:ff9b::a9fe:a9fe":     always,
		"2002:a9fe:a9fe::1":      always,
		"fe80::1":                always,
		"fe80::1%eth0":           always,
		"ff02::1":                always,
		"224.0.0.1":              always,
		"fd00:ec2::254":          always,
		"100.100.100.200":        always,
		"::ffff:100.100.100.200": always,
		"127.0.0.1":              redirected,
		"127.8.9.10":             redirected,
		"::1":                    redirected,
		"::ffff:127.0.0.1":       redirected,
		"64:ff9b::7f00:1":        redirected,
		"0.0.0.0":                redirected,
		"::":                     redirected,
		"10.0.0.1":               never,
		"192.168.1.1":            never,
		"169.253.255.255":        never,
		"169.255.0.0":            never,
		"8.8.8.8":                never,
		"2001:db8::1":            never,
		"fd00::1":                never,
	} {
		addr := netip.MustParseAddr(address)
		if got := guard.CheckAddress(addr, false) != nil; got != (refused == always) {
			t.Errorf("%s: refused is %v", address, got)
		}
		if got := guard.CheckAddress(addr, true) != nil; got != (refused != never) {
			t.Errorf("%s after a redirect: refused is %v", address, got)
		}
	}
}

func TestCheckHost(t *testing.T) {
	for text, refused := range map[string]bool{
		"https://169.254.169.254/":          true,
		"https://169.254.169.254./":         true,
		"https://[::ffff:169.254.169.254]/": true,
		"https://[fe80::1%25eth0]/":         true,
		"https://2852039166/":               true,
		"https://0xA9FEA9FE/":               true,
		"https://0xa9.254.0xa9fe/":          true,
		"https://169.254.43518/":            true,
		"https://0251.0376.0251.0376/":      true,
		"https://127.1/":                    true,
		"https://localhost/":                true,
		"https://a.LOCALHOST./":             true,
		"https:///path":                     true,
		"https://models.example.com/":       false,
		"https://1.example/":                false,
		"https://example.0x.de/":            false,
		"https://10.0.0.1/":                 false,
	} {
		target, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		err = guard.CheckHost(target, true)
		if (err != nil) != refused {
			t.Errorf("%s: %v", text, err)
		}
		if refused && failure.Of(err).Word == failure.Failed {
			t.Errorf("%s has no word: %v", text, err)
		}
	}
}

func TestShowHidesSecrets(t *testing.T) {
	target, err := url.Parse("https://user:secret@example.com/a%2Fb?token=secret#secret")
	if err != nil {
		t.Fatal(err)
	}
	if got := guard.Show(target); got != "https://example.com/a%2Fb" {
		t.Error(got)
	}
}
