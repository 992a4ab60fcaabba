// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// A logger whose values are added late writes what one writes whose are not, and
// names the same caller.
func TestLateValuesAreWritten(t *testing.T) {
	t.Parallel()
	lines := func(wrap func(logr.Logger) logr.Logger) (lines []string) {
		logger := wrap(funcr.New(func(prefix, args string) { lines = append(lines, prefix+" "+args) },
			funcr.Options{LogCaller: funcr.All, Verbosity: 1}))
		one := logger.WithName("a").WithValues("namespace", "x", "name", "y")
		two := one.WithValues("id", 1).WithName("b")
		other := one.WithValues("id", 2).WithCallDepth(0)
		logger.Info("first")
		one.V(1).Info("second", "more", true)
		one.V(2).Info("not written")
		two.Error(errors.New("e"), "third", "more", true)
		other.Info("fourth")
		return lines
	}
	want, got := lines(func(l logr.Logger) logr.Logger { return l }), lines(late)
	if len(want) != 4 || len(got) != len(want) {
		t.Fatalf("%d lines, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("line %d: %s\nwant %s", i, got[i], want[i])
		}
	}
}
