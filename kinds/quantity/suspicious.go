// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package quantity

// suspicious reports whether JSON may contain a number of more than MaxLength digits or
// with an exponent of three digits. It runs for every object, and reads each byte about
// once.
func suspicious(data []byte) bool {
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case isDigit(c) || c == '.':
			end := skip(data, i)
			// Within a word, such as a hash in hexadecimal, there is no quantity.
			alone := i == 0 || !isLetter(data[i-1])
			if alone && (end-i > MaxLength-4 || isExponent(data[end:])) { // "e+99" belongs to the length.
				return true
			}
			i = end - 1
		case c == '\\' && escapesNumber(data[i:]):
			return true
		}
	}
	return false
}

// skip returns the index after the digits and points that start at i.
func skip(data []byte, i int) int {
	for i < len(data) && (isDigit(data[i]) || data[i] == '.') {
		i++
	}
	return i
}

// isExponent reports whether data starts with an exponent of three digits.
func isExponent(data []byte) bool {
	if len(data) == 0 || data[0]|0x20 != 'e' {
		return false
	}
	data = data[1:]
	if len(data) > 0 && (data[0] == '+' || data[0] == '-') {
		data = data[1:]
	}
	end := skip(data, 0)
	return end >= 3 && (end == len(data) || !isLetter(data[end]))
}

// escapesNumber reports whether data starts with an escape, such as \u0031, of a
// character of a number. Encoders do not write them, but decoders read them.
func escapesNumber(data []byte) bool {
	if len(data) < 6 || data[1] != 'u' || data[2] != '0' || data[3] != '0' {
		return false
	}
	switch code := string(data[4:6]); code {
	case "2b", "2B", "2d", "2D", "2e", "2E", "45", "65": // The sign, the point and E.
		return true
	default:
		return code[0] == '3' && isDigit(code[1])
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
