// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package raw reads single values out of JSON without decoding the rest: no
// memory, and one pass over no more of the text than is needed. What Find returns
// is a part of the text, not a copy.
//
// Every document must be valid JSON: reading relies on its grammar and checks no
// bounds. Of a key that is repeated, Find sees the first.
package raw

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// Find returns the value that a JSON pointer (RFC 6901) names in doc, and whether
// there is one. It reads only as far as it must.
func Find(doc []byte, pointer string) ([]byte, bool) {
	at := space(doc, 0)
	for pointer != "" {
		token, _, _ := strings.Cut(pointer[1:], "/")
		if at = step(doc, at, token); at < 0 {
			return nil, false
		}
		pointer = pointer[len("/")+len(token):]
	}
	return doc[at:skip(doc, at)], true
}

// step returns where the member or item that token names begins in the value that
// begins at at, -1 if there is none.
func step(doc []byte, at int, token string) int {
	switch doc[at] {
	case '{':
		return member(doc, at, unescaped.Replace(token))
	case '[':
		return item(doc, at, token)
	}
	return -1
}

func member(doc []byte, at int, key string) int {
	for at = space(doc, at+1); doc[at] != '}'; at = next(doc, skip(doc, at)) {
		end := skip(doc, at)
		value := colon(doc, end)
		if same(doc[at:end], key) {
			return value
		}
		at = value
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

// same reports whether a JSON string, quotes included, is key.
func same(quoted []byte, key string) bool {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1:len(quoted)-1]) == key
	}
	var s string
	return json.Unmarshal(quoted, &s) == nil && s == key
}

var unescaped = strings.NewReplacer("~1", "/", "~0", "~")

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
	if end := bytes.IndexAny(doc[at:], " \t\r\n,]}"); end >= 0 {
		return at + end
	}
	return len(doc)
}

func space(doc []byte, at int) int {
	for doc[at] == ' ' || doc[at] == '\t' || doc[at] == '\r' || doc[at] == '\n' {
		at++
	}
	return at
}
