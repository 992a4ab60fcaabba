// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// block is what both languages have in common of a heading, a paragraph, an item of a list, a
// cell of a table or a block of code.
type block struct {
	Kind string
	// Code are the spans of code, and Names the other words with an upper-case letter inside,
	// such as maxSurge and ConfigMap: each once, and sorted, because word order differs.
	Code, Names []string
	Links       []string
	Strong      int
	// Literal is the content of a block of code, without its comments.
	Literal string

	prose string
}

// orderedAnchors are the anchors of a page's headings, as GitHub makes them.
func orderedAnchors(t *testing.T, file string) []string {
	t.Helper()
	var out []string
	for _, h := range heading.FindAllString(read(t, "../"+file), -1) {
		for anchor := range anchors(h) {
			out = append(out, anchor)
		}
	}
	return out
}

// blocks returns those of a page, each of which is parsed once.
func blocks(t *testing.T, file string) []block {
	t.Helper()
	if parsed[file] == nil {
		parsed[file] = parse(t, file)
	}
	return parsed[file]
}

var parsed = map[string][]block{}

func parse(t *testing.T, file string) []block {
	t.Helper()
	source := []byte(read(t, "../"+file))
	document := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(text.NewReader(source))
	var out []block
	err := ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || n.Kind() == ast.KindDocument {
			return ast.WalkContinue, nil
		}
		if n.Type() == ast.TypeInline {
			return ast.WalkSkipChildren, nil
		}
		b := block{Kind: kind(n)}
		b.addLiteral(n, source)
		for child := n.FirstChild(); child != nil && child.Type() == ast.TypeInline; child = child.NextSibling() {
			b.addInline(child, source)
		}
		b.finish()
		out = append(out, b)
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// kind returns what a block is, and how deep it lies within others.
func kind(n ast.Node) string {
	depth := 0
	for p := n.Parent(); p != nil; p = p.Parent() {
		depth++
	}
	out := fmt.Sprintf("%s, depth %d", n.Kind(), depth)
	switch n := n.(type) {
	case *ast.Heading:
		out = fmt.Sprintf("%s %d", n.Kind(), n.Level)
	case *ast.List:
		out += fmt.Sprintf(", ordered: %t", n.IsOrdered())
	case *extast.TableCell:
		out += fmt.Sprintf(", %s", n.Alignment)
	case *ast.FencedCodeBlock:
		out = ast.KindCodeBlock.String()
	case *ast.CodeBlock:
		out = ast.KindCodeBlock.String()
	}
	return out
}

var comment = regexp.MustCompile(`(?m)(^|\s)#\s.*$`)

func (b *block) addLiteral(n ast.Node, source []byte) {
	if b.Kind == ast.KindCodeBlock.String() || n.Kind() == ast.KindHTMLBlock {
		b.Literal = comment.ReplaceAllString(string(n.Lines().Value(source)), "$1#")
	}
}

// addInline adds what a part of a paragraph has. Its spans of code are left in the prose as
// empty ones, so that the prose shows where they are.
func (b *block) addInline(n ast.Node, source []byte) {
	switch n := n.(type) {
	case *ast.CodeSpan:
		b.prose += "``"
		content := ""
		for child := n.FirstChild(); child != nil; child = child.NextSibling() {
			content += string(child.(*ast.Text).Value(source))
		}
		b.Code = append(b.Code, strings.Join(strings.Fields(content), " "))
		return
	case *ast.Text:
		b.prose += string(n.Value(source))
		if n.SoftLineBreak() || n.HardLineBreak() {
			b.prose += "\n"
		}
	case *ast.Link:
		b.Links = append(b.Links, string(n.Destination))
	case *ast.Image:
		b.Links = append(b.Links, string(n.Destination))
	case *ast.AutoLink:
		b.Links = append(b.Links, string(n.URL(source)))
	case *ast.Emphasis:
		b.Strong++
	}
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		b.addInline(child, source)
	}
}

var (
	name   = regexp.MustCompile(`[A-Za-z][A-Za-z0-9]*[A-Z][A-Za-z0-9]*`)
	number = regexp.MustCompile(`\d[\d,.]*`)
)

func (b *block) finish() {
	for _, word := range name.FindAllString(b.prose, -1) {
		b.Names = append(b.Names, singular(word))
	}
	slices.Sort(b.Names)
	b.Names = slices.Compact(b.Names)
	slices.Sort(b.Code)
	b.Code = slices.Compact(b.Code)
	slices.Sort(b.Links)
}

// singular returns a name without the ending that Chinese does not have, such as ModelBoxes.
func singular(name string) string {
	for _, ending := range [][2]string{{"ies", "y"}, {"xes", "x"}, {"s", ""}} {
		if stem, ok := strings.CutSuffix(name, ending[0]); ok {
			return stem + ending[1]
		}
	}
	return name
}

func kindsOf(all []block) []string {
	var out []string
	for _, b := range all {
		out = append(out, b.Kind)
	}
	return out
}

// numbers are those that a text has in digits.
func numbers(prose string) []string {
	var out []string
	for _, n := range number.FindAllString(prose, -1) {
		out = append(out, strings.ReplaceAll(strings.TrimRight(n, ".,"), ",", ""))
	}
	return out
}

// numerals are numbers in English words, each with its digits and the characters that Chinese may
// write for it. "One" is rarely a number.
var numerals = map[string][2]string{
	"one": {"1", ""}, "two": {"2", "二两双"}, "three": {"3", "三"}, "four": {"4", "四"}, "five": {"5", "五"}, "six": {"6", "六"},
	"seven": {"7", "七"}, "eight": {"8", "八"}, "nine": {"9", "九"}, "ten": {"10", "十"}, "dozen": {"12", "十"}, "half": {"30", "半"}, "quarter": {"15", "刻"},
}

// spelledOut are the keys of numerals that a text has.
func spelledOut(prose string) []string {
	return slices.DeleteFunc(strings.Fields(words(prose)), func(word string) bool { return numerals[word][0] == "" })
}
