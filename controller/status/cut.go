// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import "unicode/utf8"

// cut shortens text to at most so many bytes, and so to no more characters, without
// dividing one. What was cut ends in three dots.
func cut(text string, most int) string {
	const dots = "..."
	if len(text) <= most {
		return text
	}
	end := most - len(dots)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + dots
}
