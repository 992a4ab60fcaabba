// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const glossary = "docs/zh-CN/glossary.md"

// A change of an English page fails this test until the Chinese page follows.
func TestChinesePagesFollowTheEnglishOnes(t *testing.T) {
	for english, chinese := range translations(t) {
		t.Run(chinese, func(t *testing.T) {
			want, got := blocks(t, english), blocks(t, chinese)
			if diff := cmp.Diff(kindsOf(want), kindsOf(got)); diff != "" {
				t.Fatalf("%s has other headings, paragraphs, lists, tables or code blocks than %s (-want +got):\n%s", chinese, english, diff)
			}
			for i := range want {
				if i == 1 {
					continue // It is the link to the other language.
				}
				expected := want[i]
				expected.Links = translatedLinks(t, english, expected.Links)
				compare(t, expected, got[i])
			}
		})
	}
}

// compare holds one block of a Chinese page to the English one.
func compare(t *testing.T, want, got block) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".prose" }, cmp.Ignore())); diff != "" {
		t.Errorf("%s\n%s\ndiffer (-want +got):\n%s", want.prose, got.prose, diff)
	}
	compareNumbers(t, want.prose, got.prose)
}

// compareNumbers fails for each number that is in one of the two texts only. Chinese may have
// digits for an English word, but not the other way round.
func compareNumbers(t *testing.T, english, chinese string) {
	t.Helper()
	digits, has := numbers(english), numbers(chinese)
	for _, n := range digits {
		if !slices.Contains(has, n) {
			t.Errorf("%s\n%s\nThe number %s is missing.", english, chinese, n)
		}
	}
	for _, word := range spelledOut(english) {
		n := numerals[word]
		digits = append(digits, n[0])
		if !slices.Contains(has, n[0]) && n[1] != "" && !strings.ContainsAny(chinese, n[1]) {
			t.Errorf("%s\n%s\nThe number %s is missing.", english, chinese, word)
		}
	}
	for _, n := range has {
		if !slices.Contains(digits, n) {
			t.Errorf("%s\n%s\nThe number %s is not in the English text.", english, chinese, n)
		}
	}
}

// Cells that are equal in English, such as the reasons on a kind's page and in troubleshooting.md,
// are equal in Chinese.
func TestEqualCellsAreTranslatedEqually(t *testing.T) {
	first := map[string]string{}
	for english, chinese := range translations(t) {
		from, to := blocks(t, english), blocks(t, chinese)
		for i := range min(len(from), len(to)) {
			key := strings.Join(from[i].Code, " ") + from[i].prose
			if !strings.HasPrefix(from[i].Kind, "TableCell") || !strings.Contains(from[i].prose, " ") {
				continue // What one word means, such as "nothing", depends on the column.
			}
			if other, ok := first[key]; ok && other != to[i].prose {
				t.Errorf("%s is translated in two ways:\n%s\n%s", from[i].prose, other, to[i].prose)
			}
			first[key] = to[i].prose
		}
	}
}

// translations are the Chinese pages by their English ones, as paths from the repository's root.
func translations(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("zh-CN/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d pages in docs/zh-CN (%v)", len(files), err)
	}
	out := map[string]string{"README.md": "README.zh-CN.md"}
	for _, file := range files {
		if name := path.Base(file); name != path.Base(glossary) {
			out["docs/"+name] = "docs/" + file
		}
	}
	return out
}

func TestEachKindHasAChinesePage(t *testing.T) {
	controllers, err := filepath.Glob("../controller/*/controller.go")
	if err != nil || len(controllers) < 5 {
		t.Fatalf("only these kinds were found: %v, %v", controllers, err)
	}
	for _, file := range append(controllers, "install/page", "troubleshooting/page") {
		if name := filepath.Base(filepath.Dir(file)) + ".md"; translations(t)["docs/"+name] == "" {
			t.Errorf("docs/zh-CN has no %s", name)
		}
	}
}

// The second block of a page is the link to it in the other language.
func TestBothLanguagesLinkToEachOther(t *testing.T) {
	for english, chinese := range translations(t) {
		there, back := relative(english, chinese), relative(chinese, english)
		if want := "\n\n[中文](" + there + ")\n\n"; !strings.Contains(read(t, "../"+english), want) {
			t.Errorf("%s does not have the line%s after its heading", english, want)
		}
		if want := "\n\n[English](" + back + ") · [术语表](" + relative(chinese, glossary) + ")\n\n"; !strings.Contains(read(t, "../"+chinese), want) {
			t.Errorf("%s does not have the line%s after its heading", chinese, want)
		}
	}
}

// relative returns the link from one file to another.
func relative(from, to string) string {
	out, err := filepath.Rel(path.Dir(from), to)
	if err != nil {
		panic(err)
	}
	return filepath.ToSlash(out)
}

func translatedLinks(t *testing.T, english string, links []string) []string {
	t.Helper()
	var out []string
	for _, link := range links {
		out = append(out, translatedLink(t, english, link))
	}
	return slices.Sorted(slices.Values(out))
}

// translatedLink returns what stands on the Chinese page for a link of its English page: the
// Chinese page that is linked to, if there is one, and the same heading of it.
func translatedLink(t *testing.T, english, link string) string {
	t.Helper()
	if strings.Contains(link, "://") {
		return link
	}
	all := translations(t)
	target, anchor, hasAnchor := strings.Cut(link, "#")
	file := english
	if target != "" {
		file = path.Join(path.Dir(english), target)
	}
	to, ok := all[file]
	if !ok {
		to = file
	}
	if target != "" {
		target = relative(all[english], to)
	}
	if !hasAnchor {
		return target
	}
	at, there := slices.Index(orderedAnchors(t, file), anchor), orderedAnchors(t, to)
	if at < 0 || at >= len(there) {
		t.Fatalf("%s links to %s, which %s does not have as well", english, link, to)
	}
	return target + "#" + there[at]
}

// pages are the Chinese pages, as paths from the repository's root.
func pages(t *testing.T) []string {
	t.Helper()
	return append(slices.Sorted(maps.Values(translations(t))), glossary)
}

// typography are the rules of Kubernetes' Chinese documentation for punctuation and spaces.
var typography = map[string]*regexp.Regexp{
	"has no space between Chinese and other characters":                    regexp.MustCompile("\\p{Han}[\\w`]|[\\w`%]\\p{Han}"),
	"has half-width punctuation":                                           regexp.MustCompile(`\p{Han} ?[,;:!?()]|[,;:!?()] ?\p{Han}|[,;:] `),
	"has a full stop that is not 。, or a space between Chinese characters": regexp.MustCompile(`\p{Han}\.|\p{Han} \p{Han}`),
	"has a space next to full-width punctuation":                           regexp.MustCompile(`[，。；：、（）？！“”] | [，。；：、（）？！“”]`),
	"has punctuation without text":                                         regexp.MustCompile(`[，。；：、？！][，。；：、？！]|[，、]$`),
	"has a line break, which is shown as a space":                          regexp.MustCompile(`\n`),
	"has a bracket or a quotation mark without the other one":              regexp.MustCompile(`（[^）]*$|^[^（]*）|“[^”]*$|^[^“]*”|\([^)]*$`),
}

func TestChineseTypography(t *testing.T) {
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			for what, rule := range typography {
				if found := rule.FindString(b.prose); found != "" {
					t.Errorf("%s %s: %q in\n%s", page, what, found, b.prose)
				}
			}
		}
	}
}

// term is a row of the glossary.
type term struct {
	// english is what words returns for it.
	english        string
	chinese, wrong []string
}

func terms(t *testing.T) []term {
	t.Helper()
	var cells []string
	for _, b := range blocks(t, glossary) {
		if strings.HasPrefix(b.Kind, "TableCell") {
			cells = append(cells, b.prose)
		}
	}
	var out []term
	for row := range slices.Chunk(cells[3:], 3) {
		out = append(out, term{words(row[0]), strings.Split(row[1], "、"), strings.FieldsFunc(row[2], func(r rune) bool { return r == '、' })})
	}
	return out
}

var word = regexp.MustCompile(`[A-Za-z]+(\.md)?`)

// words returns the words of a text in lower case, with one space between them and around, and
// without the ending of plurals.
func words(prose string) string {
	out := " "
	for _, w := range word.FindAllString(prose, -1) {
		out += singular(strings.ToLower(w)) + " "
	}
	return out
}

// Where the English text has a term, the Chinese one has its translation. The names of labels and
// ports, which are English words, may stay as they are.
func TestTheGlossaryIsKept(t *testing.T) {
	all := terms(t)
	for english, chinese := range translations(t) {
		from, to := blocks(t, english), blocks(t, chinese)
		if len(from) != len(to) {
			continue // Another test reports it.
		}
		for i := range from {
			in := words(from[i].prose)
			for _, term := range all {
				if strings.Contains(in, term.english) && !term.isKept(to[i].prose) {
					t.Errorf("%s\n%s\nThe glossary has %q for%s.", from[i].prose, to[i].prose, term.chinese, term.english)
				}
			}
		}
	}
}

func (m term) isKept(chinese string) bool {
	translated := func(term string) bool { return strings.Contains(chinese, term) }
	return slices.ContainsFunc(m.chinese, translated) || strings.Contains(words(chinese), m.english)
}

func TestNoWrongTermIsUsed(t *testing.T) {
	all := terms(t)
	for _, page := range translations(t) {
		for _, b := range blocks(t, page) {
			for _, term := range all {
				for _, wrong := range term.wrong {
					if strings.Contains(b.prose, wrong) {
						t.Errorf("%s: the glossary refuses %s, and has %q, in\n%s", page, wrong, term.chinese, b.prose)
					}
				}
			}
		}
	}
}
