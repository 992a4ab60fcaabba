// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

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
		return member(doc, at, unescape(token))
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

func unescape(token string) string {
	if !strings.Contains(token, "~") {
		return token
	}
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}
