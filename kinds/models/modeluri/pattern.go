// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modeluri

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// maxPattern is the maximum length of a pattern in bytes.
const maxPattern = 128

// Pattern selects files by their names, as those of "hf download" do (fnmatch of Python): * stands
// for any characters, / too, ? for one, [a-z] for one of these, [!a-z] for one of the others. A
// pattern that ends with / stands for everything below it.
type Pattern struct {
	text    string
	matches *regexp.Regexp
}

// ParsePattern reads a pattern. Its error follows the name of the field.
func ParsePattern(text string) (Pattern, error) {
	if text == "" || len(text) > maxPattern || strings.ContainsFunc(text, unicode.IsControl) {
		return Pattern{}, fmt.Errorf("must be a pattern of 1 to %d bytes without control characters, such as *.safetensors", maxPattern)
	}
	whole := text
	if strings.HasSuffix(text, "/") {
		whole += "*"
	}
	var out strings.Builder
	for rest := []rune(whole); len(rest) > 0; {
		class, after := brackets(rest)
		switch {
		case class != "":
			out.WriteString(class)
			rest = after
			continue
		case rest[0] == '*':
			out.WriteString(".*")
		case rest[0] == '?':
			out.WriteByte('.')
		default:
			out.WriteString(regexp.QuoteMeta(string(rest[0])))
		}
		rest = rest[1:]
	}
	matches, err := regexp.Compile(`(?s)\A(?:` + out.String() + `)\z`)
	if err != nil {
		return Pattern{}, fmt.Errorf("must be a pattern; [z-a] is no range of characters")
	}
	return Pattern{text, matches}, nil
}

// brackets returns the class of characters that a pattern begins with, and what follows it. Without
// an end, [ is a character.
func brackets(pattern []rune) (class string, after []rune) {
	if pattern[0] != '[' {
		return "", nil
	}
	out, at := "[", 1
	if at < len(pattern) && pattern[at] == '!' {
		out, at = "[^", 2
	}
	for first := at; at < len(pattern); at++ {
		switch {
		case pattern[at] == ']' && at > first:
			return out + "]", pattern[at+1:]
		case pattern[at] == '-':
			out += "-"
		default:
			out += regexp.QuoteMeta(string(pattern[at]))
		}
	}
	return "", nil
}

// Match reports whether a file with a name is selected.
func (p Pattern) Match(name string) bool { return p.matches.MatchString(name) }
