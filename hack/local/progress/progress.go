// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress shows the progress and the duration of long steps: as one line that
// is rewritten on a terminal, and as a line every twenty seconds in a log, where a
// rewritten line would be unreadable.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

const (
	terminalEvery = time.Second
	logEvery      = 20 * time.Second

	// eraseLine returns to the first column and clears the line (ECMA-48 EL).
	eraseLine = "\r\x1b[K"
)

// Reporter writes steps to one stream. Its zero value is not usable.
type Reporter struct {
	out      io.Writer
	terminal bool
}

// New returns a Reporter that writes to out and rewrites lines if terminal is
// true. See [Stderr] for the usual one.
func New(out io.Writer, terminal bool) *Reporter {
	return &Reporter{out: out, terminal: terminal}
}

// Stderr returns the Reporter of a command. Standard output is only for the command's
// result, so that a Makefile can capture it.
func Stderr() *Reporter {
	return New(os.Stderr, IsTerminal(os.Stderr))
}

// IsTerminal reports whether a line in f can be rewritten. CI systems that emulate a
// terminal set CI, and need separate lines too.
func IsTerminal(f *os.File) bool {
	if os.Getenv("CI") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Say writes one line.
func (r *Reporter) Say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.out, format+"\n", args...)
}

// Step is a step in progress. End it with [Step.Done] or [Step.Fail]; only the first
// call has an effect, so that Fail may be deferred.
type Step struct {
	reporter *Reporter
	text     string
	started  time.Time
	stop     chan struct{}
	stopped  sync.WaitGroup
	once     sync.Once

	mu     sync.Mutex
	detail string
}

// Start begins a step with a description such as "building etcd v3.7.0", and prints it
// immediately.
func (r *Reporter) Start(format string, args ...any) *Step {
	s := &Step{reporter: r, text: fmt.Sprintf(format, args...), started: time.Now(), stop: make(chan struct{})}
	s.begin()
	s.stopped.Go(s.tick)
	return s
}

// Detail sets the progress of the step, such as "12 of 160 MiB". It is shown after its
// description from the next tick on.
func (s *Step) Detail(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.detail = " " + fmt.Sprintf(format, args...)
}

// Done ends the step successfully and prints its duration.
func (s *Step) Done() { s.end("") }

// Fail ends the step as failed. The caller returns the error itself.
func (s *Step) Fail() { s.end(": failed") }

func (s *Step) begin() {
	if s.reporter.terminal {
		s.write("%s%s ...", eraseLine, s.text)
		return
	}
	s.write("%s ...\n", s.text)
}

func (s *Step) tick() {
	every := logEvery
	if s.reporter.terminal {
		every = terminalEvery
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
			s.still()
		}
	}
}

func (s *Step) still() {
	s.mu.Lock()
	detail := s.detail
	s.mu.Unlock()
	if s.reporter.terminal {
		s.write("%s%s ...%s %s", eraseLine, s.text, detail, s.elapsed())
		return
	}
	s.write("%s ...%s %s\n", s.text, detail, s.elapsed())
}

func (s *Step) end(how string) {
	s.once.Do(func() {
		close(s.stop)
		s.stopped.Wait()
		if s.reporter.terminal {
			s.write("%s%s%s (%s)\n", eraseLine, s.text, how, s.elapsed())
			return
		}
		s.write("%s%s (%s)\n", s.text, how, s.elapsed())
	})
}

func (s *Step) elapsed() string { return Short(time.Since(s.started)) }

func (s *Step) write(format string, args ...any) {
	_, _ = fmt.Fprintf(s.reporter.out, format, args...)
}

// Short formats a duration with tenths of a second below ten seconds, and with whole
// seconds above ("0.4s", "42s", "1m20s").
func Short(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
