// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report writes what the fetcher does: a line for each step, the progress at an interval, and the last word for
// the container's termination message.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

// maxLastWord is how many bytes of the last word the termination message has, maxLine how many a line of the log has, and maxSuccess how many of
// a termination message the kubelet reads.
const maxLastWord, maxLine, maxSuccess = 1024, 4096, 4096

// Log writes lines. Its methods may be called concurrently; a nil Log writes nothing.
type Log struct {
	mutex sync.Mutex
	to    io.Writer
	// secrets are what no line shows, in lower case, the longest first.
	secrets []string
}

// NewLog returns a log that writes to a writer.
func NewLog(to io.Writer) *Log { return &Log{to: to} }

// Line writes one line. The format is fmt.Printf's.
func (l *Log) Line(format string, args ...any) {
	if l == nil {
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	fmt.Fprintln(l.to, failure.Cut(l.clean(fmt.Sprintf(format, args...)), maxLine))
}

// LastWord writes a failure as the last line of the log, and into the termination log, at most 1 KiB of it. The container
// runtime has made that file where there is one.
func (l *Log) LastWord(terminationLog string, last *failure.Failure) {
	l.mutex.Lock()
	text := failure.Cut(l.clean(last.Error()), maxLastWord)
	l.mutex.Unlock()
	l.Line("%s", text)
	l.terminate(terminationLog, text)
}

// Success writes what is complete into the termination log, as JSON.
func (l *Log) Success(terminationLog string, models []modeluri.Fetched) {
	text, _ := json.Marshal(modeluri.Message{Models: models}) // It has nothing that is no JSON.
	if len(text) <= maxSuccess {
		l.terminate(terminationLog, string(text))
	}
}

func (l *Log) terminate(terminationLog, text string) {
	if terminationLog == "" {
		return
	}
	if err := os.WriteFile(terminationLog, []byte(text), 0o600); err != nil {
		l.Line("the termination message cannot be written: %v", err)
	}
}

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

// Counter counts the bytes of the current step. Its methods may be called concurrently; a nil Counter counts nothing.
type Counter struct{ now atomic.Pointer[step] }

// step is what is counted, where a total of 0 or less is unknown.
type step struct {
	name        string
	done, total atomic.Int64
	// shown is how many bytes the last line of the progress has told of.
	shown atomic.Int64
}

// Begin starts a step of total bytes, where 0 or less is unknown. No line tells of one without a name.
func (c *Counter) Begin(name string, total int64) {
	next := &step{name: name}
	next.total.Store(total)
	c.now.Store(next)
}

func (c *Counter) step() *step {
	if c == nil || c.now.Load() == nil {
		return &step{}
	}
	return c.now.Load()
}

// Total sets how many bytes the step has, once they are known.
func (c *Counter) Total(total int64) { c.step().total.Store(total) }

// Add counts bytes of the step. It takes back those that are fetched again if the number is negative.
func (c *Counter) Add(bytes int64) { c.step().done.Add(bytes) }

// Kept counts bytes that were there already: they are no speed.
func (c *Counter) Kept(bytes int64) {
	c.step().shown.Add(bytes)
	c.Add(bytes)
}

// Write counts bytes, and never fails.
func (c *Counter) Write(bytes []byte) (int, error) {
	c.Add(int64(len(bytes)))
	return len(bytes), nil
}

// Progress writes a line at each interval, until stop is called.
func Progress(log *Log, counter *Counter, every time.Duration) (stop func()) {
	ticker, end := time.NewTicker(every), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-ticker.C:
				if now := counter.step(); now.name != "" {
					log.Line("%s", now.line(every))
				}
			case <-end:
				return
			}
		}
	})
	return func() { ticker.Stop(); close(end); group.Wait() }
}

// line returns a line such as "progress: 1.2 GiB of 4.0 GiB (30 %), 52.0 MiB/s", where the speed is that since the last line.
func (s *step) line(since time.Duration) string {
	done, total := s.done.Load(), s.total.Load()
	came := max(done-s.shown.Swap(done), 0)
	text := s.name + ": " + Bytes(done)
	if total > 0 {
		text += fmt.Sprintf(" of %s (%d %%)", Bytes(total), min(int64(float64(done)/float64(total)*100), 100)) // A product could overflow.
	}
	return text + ", " + Bytes(int64(float64(came)/since.Seconds())) + "/s"
}

// Bytes returns a number of bytes in binary units, as spec.model.sizeLimit has them: "512 B", "1.2 GiB".
func Bytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	for ; value >= 1023.95; unit++ {
		value /= 1024
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTPE"[unit])
}
