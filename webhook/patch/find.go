// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// find returns what follows from the start of the value that pointer names in
// doc. It reads only as far as it must and allocates nothing but for keys with
// escapes. doc must be valid JSON: the bounds are then the grammar's.
func find(doc []byte, pointer string) ([]byte, bool) {
	at := space(doc, 0)
	for pointer != "" {
		token, _, _ := strings.Cut(pointer[1:], "/")
		if at = step(doc, at, token); at < 0 {
			return nil, false
		}
		pointer = pointer[len("/")+len(token):]
	}
	return doc[at:], true
}

// step is where the member or item that token names begins in the value that
// begins at at, -1 if there is none.
func step(doc []byte, at int, token string) int {
	switch doc[at] {
	case '{':
		return member(doc, at, unescape(token))
	case '[':
		return item(doc, at, token)
	}
	return -1
}

func member(doc []byte, at int, key string) int {
	for at = space(doc, at+1); doc[at] != '}'; at = next(doc, at) {
		start := at
		at = skip(doc, at)
		value := space(doc, space(doc, at)+1)
		if same(doc[start:at], key) {
			return value
		}
		at = skip(doc, value)
	}
	return -1
}

func item(doc []byte, at int, token string) int {
	index, err := strconv.Atoi(token)
	if err != nil {
		return -1
	}
	for at = space(doc, at+1); doc[at] != ']'; at = next(doc, skip(doc, at)) {
		if index == 0 {
			return at
		}
		index--
	}
	return -1
}

// next is where the next member or item begins, or the bracket that ends the
// list of them, given the end of the one before.
func next(doc []byte, at int) int {
	if at = space(doc, at); doc[at] == ',' {
		at = space(doc, at+1)
	}
	return at
}

// skip is the end of the value that begins at at.
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

// closing is where the quote is that ends the string in which at lies.
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

// scalar is the end of the number, true, false or null that begins at at.
func scalar(doc []byte, at int) int {
	for at < len(doc) && !bytes.ContainsRune([]byte(" \t\r\n,:]}"), rune(doc[at])) {
		at++
	}
	return at
}

func space(doc []byte, at int) int {
	for doc[at] == ' ' || doc[at] == '\t' || doc[at] == '\r' || doc[at] == '\n' {
		at++
	}
	return at
}

// same says whether a JSON string, quotes included, reads as key.
func same(quoted []byte, key string) bool {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1:len(quoted)-1]) == key
	}
	var s string
	return json.Unmarshal(quoted, &s) == nil && s == key
}

func unescape(token string) string {
	if !strings.Contains(token, "~") {
		return token
	}
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}
