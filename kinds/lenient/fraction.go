// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lenient

import "bytes"

// Fractions reports whether there may be a number that is no integer, such as 0.5 or
// 1e-3, anywhere in JSON: Go reads it into a quantity, and the schemas refuse it. It runs
// for every object, so it looks for the point and the exponent alone. If it is wrong,
// because a string contains such text, Strip finds nothing.
func Fractions(data []byte) bool {
	return within(data, '.', isDigit) || within(data, '-', func(c byte) bool { return c == 'e' })
}

// within reports whether char follows a character that behind accepts, in a number that
// is a value by itself.
func within(data []byte, char byte, behind func(byte) bool) bool {
	for {
		at := bytes.IndexByte(data, char)
		if at < 0 {
			return false
		}
		if at == 0 || !behind(data[at-1]) {
			data = data[at+1:]
			continue
		}
		start, end := at, at
		for start > 0 && ofNumber(data[start-1]) {
			start--
		}
		for end < len(data) && ofNumber(data[end]) {
			end++
		}
		if before(data[:start]) && after(data[end:]) {
			return true
		}
		data = data[end:]
	}
}

// before and after report whether a value may begin or end here.
func before(data []byte) bool {
	return len(data) == 0 || bytes.IndexByte([]byte(":,[ \t\r\n"), data[len(data)-1]) >= 0
}

func after(data []byte) bool {
	return len(data) == 0 || bytes.IndexByte([]byte(",]} \t\r\n"), data[0]) >= 0
}

func ofNumber(c byte) bool {
	return isDigit(c) || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E'
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
