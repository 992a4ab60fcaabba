// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tour

import "strings"

// wrap breaks a line at blanks so that no part is longer than width, if it can.
func wrap(line string, width int) []string {
	var parts []string
	for len(line) > width {
		at := strings.LastIndexByte(line[:width], ' ')
		if at <= 0 {
			break
		}
		parts = append(parts, line[:at])
		line = "  " + strings.TrimLeft(line[at:], " ")
	}
	return append(parts, line)
}

// plain takes from a refusal what only a client knows: which command failed, on
// which file. Each of several errors gets a line of its own.
func plain(output string) string {
	if _, after, found := strings.Cut(output, "denied the request: "); found {
		output = after
	}
	output = strings.TrimPrefix(output, "Error from server (Invalid): ")
	return strings.ReplaceAll(strings.ReplaceAll(output, "is invalid: [", "is invalid:\n- "), ", spec.", ",\n- spec.")
}

// additions are the lines of b, those that a has not with a "+", and then what of a
// was not found in b, with a "-". It takes a's lines where b has them first, which
// is right for a b that only adds to a.
func additions(a, b []string) []string {
	var out []string
	for _, line := range b {
		if len(a) > 0 && a[0] == line {
			out, a = append(out, "  "+line), a[1:]
			continue
		}
		out = append(out, "+ "+line)
	}
	for _, line := range a {
		out = append(out, "- "+line)
	}
	return out
}
