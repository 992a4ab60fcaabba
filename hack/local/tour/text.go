// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tour

import "strings"

// wrap breaks a line at spaces so that no part is longer than width, if possible.
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

// plain removes the prefix that the client adds to an error of the API server, and
// writes each of several errors on its own line.
func plain(output string) string {
	for _, prefix := range []string{"denied the request: ", "denied request: "} { // of a webhook and of a policy
		if _, after, found := strings.Cut(output, prefix); found {
			output = after
		}
	}
	output = strings.TrimPrefix(output, "Error from server (Invalid): ")
	return strings.ReplaceAll(strings.ReplaceAll(output, "is invalid: [", "is invalid:\n- "), ", spec.", ",\n- spec.")
}

// additions returns the lines of b, with a "+" before those that a does not have, and
// then the lines of a that were not found in b, with a "-". It matches each line of a
// with its first occurrence in b, which is correct if b only adds lines to a.
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

// shellWords returns a command line as it can be pasted into a shell.
func shellWords(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		if words[i] = arg; arg == "" || strings.ContainsAny(arg, " \t\n\"'`$&|;<>(){}[]*?!#~\\") {
			words[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
