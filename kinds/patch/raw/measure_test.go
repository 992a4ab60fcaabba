// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package raw

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMeasure(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]Size{
		``:                           {},
		`null`:                       {Bytes: 4},
		`" a "`:                      {Bytes: 5},
		`[]`:                         {Bytes: 2, Depth: 1},
		`{ }`:                        {Bytes: 2, Depth: 1},
		`[1, "a", {}, null]`:         {Bytes: 15, Items: 4, Depth: 2},
		`{"a": {"b": [1]} , "c":""}`: {Bytes: 22, Items: 1, Members: 3, Depth: 3},
		`["{[:,", "\"]"]`:            {Bytes: 14, Items: 2, Depth: 1},
		`[[[]],[{"a":[]}]]`:          {Bytes: 17, Items: 4, Members: 1, Depth: 4},
		// Variables, and a list within one.
		`{"env":[{"name":"a","value":"b"},{}],"args":["a",7,null]}`: {Bytes: 57, Members: 2, Variables: 5, Depth: 3},
		`{"env":[{"valueFrom":{"a":{"b":[1,2]}}}],"x":["env",[1]]}`: {Bytes: 57, Items: 5, Members: 2, Variables: 1, Depth: 6},
		`{"command":{"a":[1]},"envs":[[1,2]]}`:                      {Bytes: 36, Items: 3, Members: 3, Variables: 1, Depth: 3},
		`{"env":1,"b":[1]}`:                                         {Bytes: 17, Items: 1, Members: 2, Depth: 2},
		// What is deeper than any spec may be is counted as items.
		strings.Repeat("[", 100) + `{"a":1}` + strings.Repeat("]", 100): {Bytes: 207, Items: 102, Depth: 101},
		strings.Repeat(`{"env":[`, 50) + "1" + strings.Repeat("]}", 50): {Bytes: 501, Members: 1, Variables: 31, Items: 55, Depth: 100},
	} {
		if diff := cmp.Diff(want, Measure([]byte(value))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", value, diff)
		}
	}
}

// FuzzMeasure: it ends, and every value that is not text has a byte.
func FuzzMeasure(f *testing.F) {
	for _, seed := range []string{`{"a":[1,"\\",{}]}`, `"`, `"\`, `]]}:`, `{"env":[{}`, "[[[", ","} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		size := Measure(value)
		if got := size.Items + size.Members + size.Variables; got > len(value) || size.Bytes > len(value) || size.Bytes < 0 || size.Depth > len(value) {
			t.Errorf("%q: %+v", value, size)
		}
	})
}
