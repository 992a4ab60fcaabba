// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// minSecret is the shortest secret that is hidden, in bytes: a shorter one is a part of too many words.
	minSecret = 6
	// hidden stands in lines for a secret.
	hidden = "***"
)

// Hide makes every line, and the last word, show these texts as "***", also where they are escaped.
func (l *Log) Hide(secrets ...string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, secret := range secrets {
		quoted := strconv.Quote(secret)
		forms := []string{secret, strings.TrimSpace(secret), url.QueryEscape(secret), url.PathEscape(secret), (&url.URL{Path: secret}).EscapedPath(), quoted[1 : len(quoted)-1]}
		for part := range strings.SplitSeq(secret, "/") { // Where a URL takes it apart.
			if len(part) >= 2*minSecret {
				forms = append(forms, part)
			}
		}
		for _, form := range forms {
			if form = lowered(form); len(form) >= minSecret && !slices.Contains(l.secrets, form) {
				l.secrets = append(l.secrets, form)
			}
		}
	}
	slices.SortFunc(l.secrets, func(a, b string) int { return len(b) - len(a) })
}

// secretName is the end of the name of a variable whose value is a secret.
var secretName = regexp.MustCompile(`(?i)(?:TOKEN|PASSWORD|SECRET_ACCESS_KEY|_PROXY)$`)

// Hiding returns a function that returns variables, and hides those that are secrets: what is never read is never sent.
func (l *Log) Hiding(getenv func(string) string) func(string) string {
	return func(name string) string {
		value := getenv(name)
		if secretName.MatchString(name) {
			l.HideWithin(value)
			if !strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
				l.Hide(value)
			}
		}
		return value
	}
}

// What of a URL is a secret: the user and the password, and the query.
var (
	userOfURL  = regexp.MustCompile(`(?:^|://)([^/?#\s"]*)@`)
	queryOfURL = regexp.MustCompile(`\?([^#\s"]+)`)
)

// HideWithin hides what is secret in the URLs of a text, such as an argument of the program.
func (l *Log) HideWithin(text string) {
	for _, found := range userOfURL.FindAllStringSubmatch(text, -1) {
		_, password, _ := strings.Cut(found[1], ":")
		l.Hide(found[1], password)
	}
	for _, found := range queryOfURL.FindAllStringSubmatch(text, -1) {
		for pair := range strings.SplitSeq(strings.ReplaceAll(found[1], `\u0026`, "&"), "&") { // As JSON has it.
			_, value, _ := strings.Cut(pair, "=")
			l.Hide(value)
			if plain, err := url.QueryUnescape(value); err == nil {
				l.Hide(plain)
			}
		}
		l.Hide(found[1])
	}
}

// clean returns a text as one line without secrets, and without characters that a terminal obeys.
func (l *Log) clean(text string) string {
	for _, secret := range l.secrets {
		text = without(text, secret)
	}
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

// without hides a secret in a text, in upper or lower case. Its time is that of the text.
func without(text, secret string) string {
	var out strings.Builder
	for rest := lowered(text); ; {
		at := strings.Index(rest, secret)
		if at < 0 {
			return out.String() + text
		}
		out.WriteString(text[:at] + hidden)
		text, rest = text[at+len(secret):], rest[at+len(secret):]
	}
}

// lowered returns a text of the same length, with the letters of ASCII in lower case.
func lowered(text string) string {
	out := []byte(text)
	for i, b := range out {
		if 'A' <= b && b <= 'Z' {
			out[i] += 'a' - 'A'
		}
	}
	return string(out)
}
