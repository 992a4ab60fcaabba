// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package raw

import "bytes"

// next returns where the next member or item begins, or the bracket that ends the
// list of them, given the end of the one before.
func next(doc []byte, at int) int {
	if at = space(doc, at); doc[at] == ',' {
		at = space(doc, at+1)
	}
	return at
}

// colon returns where the value begins whose key ends at at.
func colon(doc []byte, at int) int {
	return space(doc, space(doc, at)+len(":"))
}

// skip returns the end of the value that begins at at.
func skip(doc []byte, at int) int {
	depth := 0
	for {
		switch doc[at] {
		case '"':
			at = closing(doc, at+1)
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ' ', '\t', '\r', '\n', ',', ':':
		default:
			at = scalar(doc, at) - 1
		}
		at++
		if depth == 0 {
			return at
		}
	}
}

// closing returns where the quote is that ends the string in which at lies.
func closing(doc []byte, at int) int {
	for {
		at += bytes.IndexByte(doc[at:], '"')
		slashes := 0
		for doc[at-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return at
		}
		at++
	}
}

// scalar returns the end of the number, true, false or null that begins at at.
func scalar(doc []byte, at int) int {
	for ; at < len(doc); at++ {
		switch doc[at] {
		case ' ', '\t', '\r', '\n', ',', ']', '}':
			return at
		}
	}
	return at
}

func space(doc []byte, at int) int {
	for doc[at] == ' ' || doc[at] == '\t' || doc[at] == '\r' || doc[at] == '\n' {
		at++
	}
	return at
}
