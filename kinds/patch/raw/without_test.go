// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package raw

import "testing"

func TestWithout(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`{"a":{"b":[1,2]},"c":3}`:           `{"a":null       ,"c":3}`,
		`{"a":1234}`:                        `{"a":null}`,
		`{"a":[]}`:                          `{"a":[]}`,
		`{"c":"abcdef","a":{"b":[1,2]}}`:    `{"c":null    ,"a":null       }`,
		`{"b":{"a":12345}}`:                 `{"b":{"a":12345}}`,
		`{"c":true,"d":"abcdef","a":"abc"}`: `{"c":null,"d":"abcdef","a":null }`,
	} {
		given := []byte(doc)
		if got := Without(given, "/a", "/c"); string(got) != want {
			t.Errorf("%s became %s, want %s", doc, got, want)
		}
		if string(given) != doc {
			t.Errorf("%s itself became %s", doc, given)
		}
	}
}
