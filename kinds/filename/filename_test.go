// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package filename_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/modelbox-operator/modelbox-operator/kinds/filename"
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
		{name: "", err: filename.ErrEmpty},
		{name: "/a", err: filename.ErrOutside},
		{name: "//a", err: filename.ErrOutside},
		{name: "..", err: filename.ErrOutside},
		{name: "../a", err: filename.ErrOutside},
		{name: "../../etc/passwd", err: filename.ErrOutside},
		{name: "a/../../b", err: filename.ErrOutside},
		{name: "a/../b", err: filename.ErrOutside},
		{name: "a/..", err: filename.ErrOutside},
		{name: `a\b`, err: filename.ErrBytes},
		{name: `..\..\a`, err: filename.ErrBytes},
		{name: `C:\a`, err: filename.ErrBytes},
		{name: "a\x00b", err: filename.ErrBytes},
		{name: strings.Repeat("n", 256), err: filename.ErrTooLong},
		{name: "模型/" + strings.Repeat("型", 86), err: filename.ErrTooLong},
		{name: strings.Repeat("a/", 100), err: filename.ErrTooDeep},
		{name: strings.Repeat("abcdefgh/", 300), err: filename.ErrTooLong},
	} {
		got, err := filename.Clean(each.name)
		if got != each.want || !errors.Is(err, each.err) {
			t.Errorf("Clean(%q) is %q, %v; want %q, %v", each.name, got, err, each.want, each.err)
		}
	}
}

func TestSingle(t *testing.T) {
	for name, valid := range map[string]bool{
		"a.bin": true, ".hidden": true, "a b": true,
		"": false, ".": false, "..": false, "a/b": false, "a/": false, "./a": false, "/": false, "a\x00": false,
	} {
		if _, err := filename.Single(name); (err == nil) != valid {
			t.Errorf("Single(%q): %v", name, err)
		}
	}
}
