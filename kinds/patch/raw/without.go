// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package raw

import "bytes"

// Without returns doc with null in the place of the values that JSON pointers name, so
// that a decoder passes over them. A value that is shorter than null stays. doc itself is
// not changed.
func Without(doc []byte, pointers ...string) []byte {
	copied := false
	for _, pointer := range pointers {
		value, ok := Find(doc, pointer)
		if !ok {
			continue
		}
		if !copied {
			doc, copied = bytes.Clone(doc), true
			value, _ = Find(doc, pointer)
		}
		blank(value)
	}
	return doc
}

func blank(value []byte) {
	const null = "null"
	if len(value) < len(null) {
		return
	}
	for i := copy(value, null); i < len(value); i++ {
		value[i] = ' '
	}
}
