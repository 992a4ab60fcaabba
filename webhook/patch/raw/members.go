// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package raw

import "iter"

// Members yields the members of an object, in their order: each key as it is
// written, quotes and escapes included, and its value. It yields nothing if the
// value is not an object.
func Members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		at := space(object, 0)
		if object[at] != '{' {
			return
		}
		for at = space(object, at+1); object[at] != '}'; {
			end := skip(object, at)
			value := colon(object, end)
			after := skip(object, value)
			if !yield(object[at:end], object[value:after]) {
				return
			}
			at = next(object, after)
		}
	}
}

// Blank overwrites a value with null, in place, so that a decoder passes over it.
// What is shorter than null stays as it is.
func Blank(value []byte) {
	const null = "null"
	if len(value) < len(null) {
		return
	}
	for i := copy(value, null); i < len(value); i++ {
		value[i] = ' '
	}
}
