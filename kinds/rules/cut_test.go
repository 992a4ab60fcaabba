// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCutDividesNoCharacter(t *testing.T) {
	for _, text := range []string{"", "plain", strings.Repeat("a", 40), strings.Repeat("ö", 40), strings.Repeat("箱", 40), strings.Repeat("🚀", 40), "\xff\xfe" + strings.Repeat("\x80", 40)} {
		for most := 3; most <= 2*len(text)+3; most++ {
			got := Cut(text, most)
			if len(got) > most {
				t.Fatalf("%d bytes of %q, want at most %d", len(got), text, most)
			}
			if len(text) <= most && got != text {
				t.Fatalf("%q was cut to %q, and %d bytes are allowed", text, got, most)
			}
			if utf8.ValidString(text) && !utf8.ValidString(got) {
				t.Fatalf("%q, cut to %d bytes, is %q", text, most, got)
			}
		}
	}
}
