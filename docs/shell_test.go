// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"regexp"
	"strings"
)

var shellToken = regexp.MustCompile(`(?s)\\.|'[^']*'|"(?:\\.|[^"\\])*"|[$<]?\(|\d?>&\d|\d?>|<+|[\n;|&)]| +#[^\n]*| +|[^\s\\'"$<>;|&()]+|.`)

// simpleCommands splits what a shell reads into the words of its simple commands, those of $( )
// before the one that has them. Words are without their quotes; what is redirected, and comments,
// are left out.
func simpleCommands(script string) (out [][]string) {
	type command struct {
		words      []string
		word       string
		redirected bool
	}
	var at command
	var outer []command
	endWord := func() {
		if at.word != "" && !at.redirected {
			at.words = append(at.words, at.word)
		}
		at.redirected = at.redirected && at.word == ""
		at.word = ""
	}
	endCommand := func() {
		if endWord(); len(at.words) > 0 {
			out = append(out, at.words)
		}
		at = command{}
	}
	for _, token := range shellToken.FindAllString(script, -1) {
		switch {
		case token[0] == ' ':
			endWord()
		case strings.Contains("\n;|&", token):
			endCommand()
		case strings.HasSuffix(token, "("):
			outer, at = append(outer, at), command{}
		case token == ")":
			endCommand()
			if last := len(outer) - 1; last >= 0 {
				at, outer = outer[last], outer[:last]
			}
			at.word += "$()"
		case strings.Contains(token, ">&"):
		case strings.Trim(token, "<>0123456789") == "" && strings.ContainsAny(token, "<>"):
			endWord()
			at.redirected = true
		case token[0] == '"':
			_, inner, _ := strings.Cut(token, "$(")
			out = append(out, simpleCommands(strings.TrimRight(inner, `)"`))...)
			at.word += token[1 : len(token)-1]
		default:
			at.word += strings.Trim(strings.TrimPrefix(token, `\`), "'\n")
		}
	}
	endCommand()
	return out
}
