// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"strconv"
	"strings"
)

var escapes = strings.NewReplacer("~", "~0", "/", "~1")

// At returns the JSON pointer of a part of a list's item: At("/spec/ports", 0, "/name")
// is /spec/ports/0/name, and with an empty rest it is the item itself. It costs
// one allocation.
func At(list string, index int, rest string) string {
	return list + "/" + strconv.Itoa(index) + rest
}

// Key returns the JSON pointer of an entry of a map, or of a field with an uncommon
// name: Key("/metadata/annotations", "example.com/a") is
// /metadata/annotations/example.com~1a.
func Key(parent, key string) string {
	return parent + "/" + escapes.Replace(key)
}

// parent returns the pointer of the object or list that holds pointer, "" for a field of
// the document.
func parent(pointer string) string {
	return pointer[:max(strings.LastIndexByte(pointer, '/'), 0)]
}

// within reports whether pointer is root or lies below it.
func within(pointer, root string) bool {
	rest, ok := strings.CutPrefix(pointer, root)
	return ok && (rest == "" || rest[0] == '/')
}
