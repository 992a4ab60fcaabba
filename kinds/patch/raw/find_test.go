// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package raw

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFind(t *testing.T) {
	t.Parallel()
	const doc = ` { "a" : { "b" : [ 1 , {"c":"x\\\"]}"} , [ ] ,null] , "d":true},
		"e\u0066" : 1e3, "":{"":2}, "g/h~":3, "i":{"a":9},"last" : "s" } `
	for pointer, want := range map[string]string{
		"":         doc[1 : len(doc)-1],
		"/a/b/0":   `1`,
		"/a/b/1/c": `"x\\\"]}"`,
		"/a/b/2":   `[ ]`,
		"/a/b/3":   `null`,
		"/a/d":     `true`,
		"/ef":      `1e3`,
		"//":       `2`,
		"/g~1h~0":  `3`,
		"/i/a":     `9`,
		"/last":    `"s"`,
		"/b":       ``,
		"/a/b/4":   ``,
		"/a/b/c":   ``,
		"/a/b/-":   ``,
		"/a/d/e":   ``,
		"/a/b/2/0": ``,
	} {
		got, ok := Find([]byte(doc), pointer)
		if !ok {
			if want != "" {
				t.Errorf("%q: not found, want %s", pointer, want)
			}
			continue
		}
		if string(got) != want {
			t.Errorf("%q: %s, want %s", pointer, got, want)
		}
	}
}

// FuzzFind reads every value of a document by its pointer and compares it with
// what encoding/json reads there. Text that is not UTF-8 is not JSON to the API server.
func FuzzFind(f *testing.F) {
	for _, seed := range []string{
		`{"a":{"b":[1,{"c":"x\\\"]}"}]},"d":null}`, ` [ [ ] , "\\" , {"\u0061":-1.5e3} ] `, `"\\\\\""`, `{"a~/":{"":0}}`, `tru`, `[]]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var tree any
		if !utf8.Valid(doc) || json.Unmarshal(doc, &tree) != nil || repeats(doc) {
			return
		}
		walk(t, doc, "", tree)
	})
}

func walk(t *testing.T, doc []byte, pointer string, want any) {
	found, ok := Find(doc, pointer)
	if !ok {
		t.Fatalf("%s: %q not found", doc, pointer)
	}
	var got any
	if err := json.Unmarshal(found, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: %q is %v (%v), want %v", doc, pointer, got, err, want)
	}
	switch want := want.(type) {
	case map[string]any:
		for key, value := range want {
			walk(t, doc, pointer+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(key), value)
		}
	case []any:
		for i, value := range want {
			walk(t, doc, pointer+"/"+strconv.Itoa(i), value)
		}
	}
}

// repeats says whether some object names a member twice, in which case readers
// differ and the API server has already settled on one.
func repeats(doc []byte) bool {
	var tree any
	_ = json.Unmarshal(doc, &tree)
	return count(tree) != colons(doc)
}

// count is the number of members in a tree, at any depth.
func count(tree any) (n int) {
	switch tree := tree.(type) {
	case map[string]any:
		n = len(tree)
		for _, value := range tree {
			n += count(value)
		}
	case []any:
		for _, value := range tree {
			n += count(value)
		}
	}
	return n
}

// colons is the number of members as written: a colon outside a string is one.
func colons(doc []byte) (n int) {
	for i := 0; i < len(doc); i++ {
		switch doc[i] {
		case '"':
			i = closing(doc, i+1)
		case ':':
			n++
		}
	}
	return n
}
