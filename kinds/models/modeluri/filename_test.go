// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modeluri

import (
	"errors"
	"strings"
	"testing"
)

func TestClean(t *testing.T) {
	for _, each := range []struct {
		name, want string
		err        error
	}{
		{name: "a", want: "a"},
		{name: "a/b/c.bin", want: "a/b/c.bin"},
		{name: "./a//b/./c/", want: "a/b/c"},
		{name: "./", want: "."},
		{name: "...", want: "..."},
		{name: "a/..b", want: "a/..b"},
		{name: strings.Repeat("n", 255), want: strings.Repeat("n", 255)},
		{name: "", err: errEmpty},
		{name: "/a", err: errOutside},
		{name: "//a", err: errOutside},
		{name: "..", err: errOutside},
		{name: "../a", err: errOutside},
		{name: "../../etc/passwd", err: errOutside},
		{name: "a/../../b", err: errOutside},
		{name: "a/../b", err: errOutside},
		{name: "a/..", err: errOutside},
		{name: `a\b`, err: errBytes},
		{name: `..\..\a`, err: errBytes},
		{name: `C:\a`, err: errBytes},
		{name: "a\x00b", err: errBytes},
		{name: strings.Repeat("n", 256), err: errTooLong},
		{name: "模型/" + strings.Repeat("型", 86), err: errTooLong},
		{name: strings.Repeat("a/", 100), err: errTooDeep},
		{name: strings.Repeat("abcdefgh/", 300), err: errTooLong},
	} {
		got, err := Clean(each.name)
		if got != each.want || !errors.Is(err, each.err) {
			t.Errorf("Clean(%q) is %q, %v; want %q, %v", each.name, got, err, each.want, each.err)
		}
	}
}

func TestLastSegment(t *testing.T) {
	for name, valid := range map[string]bool{
		"a.bin": true, ".hidden": true, "a b": true, "a/b": true, "./a": true,
		"": false, ".": false, "..": false, "a/": false, "/": false, "a\x00": false,
	} {
		if _, err := lastSegment(name); (err == nil) != valid {
			t.Errorf("lastSegment(%q): %v", name, err)
		}
	}
}
