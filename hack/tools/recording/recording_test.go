// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestScreen(t *testing.T) {
	for name, test := range map[string]struct {
		writes []string
		want   []string
	}{
		"lines":                       {[]string{"a\r\nb\r\n"}, []string{"a", "b"}},
		"an empty line":               {[]string{"a\r\n\r\nb\r\n"}, []string{"a", "", "b"}},
		"a line in two reads":         {[]string{"a", "b\r", "\n"}, []string{"ab"}},
		"a line that is rewritten":    {[]string{"\r\x1b[Kbuilding ...", "\r\x1b[Kbuilding ... 1s", "\r\x1b[Kbuilding (2s)\r\n"}, []string{"building (2s)"}},
		"a code in two reads":         {[]string{"building ...\r\x1b", "[", "Kbuilt\r\n"}, []string{"built"}},
		"a return without an erasure": {[]string{"long\rx\r\n"}, []string{"x"}},
		"colours stay":                {[]string{"\x1b[1mtitle\x1b[0m\r\n"}, []string{"\x1b[1mtitle\x1b[0m"}},
		"a prompt is no line":         {[]string{"a\r\nb"}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &screen{}
			for _, write := range test.writes {
				s.write(write, 0)
			}
			var got []string
			for _, l := range s.lines {
				got = append(got, l.text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPace(t *testing.T) {
	at := func(ms int, text string) line { return line{text, time.Duration(ms) * time.Millisecond} }
	for name, test := range map[string]struct {
		before, after line
		want          time.Duration
	}{
		"as it was":                     {at(0, "a"), at(800, "b"), 800 * time.Millisecond},
		"a wait is shortened":           {at(0, "a"), at(40000, "b"), longestWait},
		"a line stays until it is read": {at(0, strings.Repeat("a", 100)), at(1, "b"), readLine + 100*readCharacter},
		"colours are not read":          {at(0, "\x1b[1ma\x1b[0m"), at(1, "b"), readLine + readCharacter},
		"an empty line is not":          {at(5, ""), at(5, "b"), 0},
		"a pause before a step":         {at(5, ""), at(5, "\x1b[1m2. A ModelBox\x1b[0m"), beforeStep},
	} {
		if got := gap(test.before, test.after); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestColoured(t *testing.T) {
	for text, want := range map[string]string{
		"a < b":                          "a &lt; b",
		"\x1b[1m2. x\x1b[0m":             `<tspan class="b">2. x</tspan>`,
		"   \x1b[32mok\x1b[0m it & that": `   <tspan class="g">ok</tspan> it &amp; that`,
		"\x1b[31mrefused\x1b[m":          `<tspan class="r">refused</tspan>`,
		"\x1b[35mx\x1b[0m":               "x",
	} {
		if got := coloured(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestWrap(t *testing.T) {
	word := strings.Repeat("a", 64)
	for text, want := range map[string]string{
		"short":                                   "short",
		word + " " + word:                         word + "|      " + word,
		"\x1b[32mok\x1b[0m " + word + " " + word:  "\x1b[32mok\x1b[0m " + word + "|      " + word,
		strings.Repeat("a", columns+10):           strings.Repeat("a", columns) + "|" + indentation + strings.Repeat("a", 10),
		word + " b " + word + " " + word + " end": word + " b|      " + word + "|      " + word + " end",
	} {
		if got := strings.Join(wrap(text), "|"); got != want {
			t.Errorf("%q:\n%s, want\n%s", text, got, want)
		}
	}
}

// What a command shows in a terminal is in the picture, line by line.
func TestRecord(t *testing.T) {
	lines, err := record(exec.Command("sh", "-c", `test -t 1 && printf '\033[1m1. A <step>\033[0m\nsome text\n'`), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	picture := render(lines, frame{title: "sh & co", desc: "what it shows", still: "1."})
	if err := wellFormed(picture); err != nil {
		t.Fatalf("%v in\n%s", err, picture)
	}
	for _, want := range []string{
		`<title id="title">sh &amp; co</title>`, `<desc id="desc">what it shows</desc>`,
		`<text y="13"><tspan class="b">1. A &lt;step&gt;</tspan></text>`, `<text y="31">some text</text>`,
	} {
		if !strings.Contains(picture, want) {
			t.Errorf("no %s in\n%s", want, picture)
		}
	}
}

func TestRecordOfACommandThatFails(t *testing.T) {
	if _, err := record(exec.Command("false"), io.Discard); err == nil {
		t.Error("a command that fails has a recording")
	}
}

// The cover leaves the window when the window is full, and then the lines move up.
func TestKeyframes(t *testing.T) {
	var lines []line
	var ends []int
	for i := range rows + 2 {
		lines, ends = append(lines, line{text: "a"}), append(ends, i+1)
	}
	frames := keyframes(lines, ends)
	play, uncover := frames[1].(string), frames[2].(string)
	if got := strings.Count(uncover, "%{"); got != rows || !strings.HasSuffix(uncover, "{transform:translateY(540px)}") {
		t.Errorf("the cover moves %d times: %s", got, uncover)
	}
	if got := strings.Count(play, "%{"); got != 3 || !strings.HasPrefix(play, " 0%{transform:translateY(0px)}") || !strings.HasSuffix(play, "{transform:translateY(-36px)}") {
		t.Errorf("the lines move %d times: %s", got, play)
	}
}

func wellFormed(document string) error {
	for decoder := xml.NewDecoder(strings.NewReader(document)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
