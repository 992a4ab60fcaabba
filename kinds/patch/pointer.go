// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"strconv"
	"strings"
)

var (
	escapes   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapes = strings.NewReplacer("~1", "/", "~0", "~")
)

// At returns the JSON pointer of a part of a list's item: At("/spec/ports", 0, "/name")
// is /spec/ports/0/name, and with an empty rest it is the item itself.
func At(list string, index int, rest string) string {
	return list + "/" + strconv.Itoa(index) + rest
}

// Key returns the JSON pointer of an entry of a map, or of a field with an uncommon
// name: Key("/metadata/annotations", "example.com/a") is
// /metadata/annotations/example.com~1a.
func Key(parent, key string) string {
	return parent + "/" + escapes.Replace(key)
}

// Unescape returns the name of a part of a JSON pointer.
func Unescape(part string) string { return unescapes.Replace(part) }
