// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestThePageIsUpToDate(t *testing.T) {
	t.Parallel()
	want, err := page()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("run 'make generate' (-want +got):\n%s", diff)
	}
	for _, name := range []string{"lint", "render", "next", "status", "restart", "pause", "resume", "history", "undo", "completion", "version"} {
		if !strings.Contains(want, "\n### modelbox "+name+"\n") {
			t.Errorf("the page lacks %s", name)
		}
	}
}
