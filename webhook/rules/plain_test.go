// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/distribution/reference"
)

// TestPlainImages: what is taken without asking the library is what it takes.
func TestPlainImages(t *testing.T) {
	t.Parallel()
	const alphabet = "ab09A._-/:@ "
	source := rand.New(rand.NewPCG(1, 2))
	taken := 0
	for range 300_000 {
		text := make([]byte, 1+source.IntN(14))
		for i := range text {
			// Mostly letters, or hardly any image would be plain.
			text[i] = alphabet[min(source.IntN(len(alphabet)), source.IntN(len(alphabet)))]
		}
		image := string(text)
		if !plain(image) {
			continue
		}
		taken++
		if _, err := reference.ParseNormalizedNamed(image); err != nil {
			t.Fatalf("%q is taken for a plain image, but the library says: %v", image, err)
		}
	}
	if taken < 10_000 {
		t.Errorf("only %d images were plain, which proves little", taken)
	}
	for image, want := range map[string]bool{
		"nginx": true, "nginx:1.27": true, "registry.example.com/team/server:1.2-rc_1": true, "localhost/a": true,
		"": false, "nginx:": false, ":1": false, "a//b": false, "/a": false, "a/": false, "A": false, "a..b": false, "a__b/c": false,
		"localhost:5000/a": false, "a@sha256:b": false, "a:" + strings.Repeat("b", 129): false,
		strings.Repeat("a", 64): false, strings.Repeat("a", 201): false,
	} {
		if got := plain(image); got != want {
			t.Errorf("plain(%q) is %t", image, got)
		}
	}
}
