// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
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

func TestSimpleCommands(t *testing.T) {
	script := `for x in $(kubectl get "$kind" -o jsonpath='{.a b}'); do` + "\n" + `A=1 make x \` + "\n" + `  B="c $(go env X)" >/dev/null 2>&1 & # make y` +
		"\n" + `(cd a && modelbox lint -f - <<END) || test $? = 1`
	want := `[kubectl get $kind -o jsonpath={.a b}] [for x in $()] [do] [go env X] [A=1 make x B=c $(go env X)] [cd a] [modelbox lint -f -] [$()] [test $? = 1]`
	if got := fmt.Sprint(simpleCommands(script)); got != "["+want+"]" {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
