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

// diff is what b has and a has not ("+"), what a has and b has not ("-"), and what
// both have (" "), in order: by a longest common subsequence of their lines.
func diff(a, b []string) []string {
	length := make([][]int, len(a)+1)
	for i := range length {
		length[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	var out []string
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, "  "+a[i])
			i, j = i+1, j+1
		case j < len(b) && (i == len(a) || length[i][j+1] >= length[i+1][j]):
			out = append(out, "+ "+b[j])
			j++
		default:
			out = append(out, "- "+a[i])
			i++
		}
	}
	return out
}
