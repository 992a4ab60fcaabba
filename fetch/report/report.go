// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report writes what the fetcher does: a line for each step, the progress at an interval, and the last word for
// the container's termination message.
package report

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
)

// maxLastWord is how many bytes of the last word the termination message has.
const maxLastWord = 1024

// Log writes lines. Its methods may be called concurrently; a nil Log writes nothing.
type Log struct {
	mutex sync.Mutex
	to    io.Writer
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
	fmt.Fprintf(l.to, format+"\n", args...)
}

// LastWord writes a failure as the last line of the log, and into the termination log, at most 1 KiB of it. The container
// runtime has made that file where there is one.
func (l *Log) LastWord(terminationLog string, last *failure.Failure) {
	text := failure.Cut(last.Error(), maxLastWord)
	l.Line("%s", text)
	if terminationLog == "" {
		return
	}
	if err := os.WriteFile(terminationLog, []byte(text), 0o600); err != nil {
		l.Line("the termination message cannot be written: %v", err)
	}
}

// Counter counts the bytes of the current step. Its methods may be called concurrently; a nil Counter counts nothing.
type Counter struct {
	step        atomic.Pointer[string]
	done, total atomic.Int64
}

// Begin starts a step of total bytes, where 0 or less is unknown.
func (c *Counter) Begin(step string, total int64) {
	if c == nil {
		return
	}
	c.done.Store(0)
	c.total.Store(total)
	c.step.Store(&step)
}

// Total sets how many bytes the step has, once they are known.
func (c *Counter) Total(total int64) {
	if c != nil {
		c.total.Store(total)
	}
}

// Add counts bytes of the step. It takes back those that are fetched again if the number is negative.
func (c *Counter) Add(bytes int64) {
	if c != nil {
		c.done.Add(bytes)
	}
}

// Progress writes a line at each interval, until stop is called.
func Progress(log *Log, counter *Counter, every time.Duration) (stop func()) {
	ticker, end, ended := time.NewTicker(every), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		var last snapshot
		for {
			select {
			case <-ticker.C:
				now := counter.snapshot()
				if now.step != "" {
					log.Line("%s", now.line(last, every))
				}
				last = now
			case <-end:
				return
			}
		}
	}()
	return func() { ticker.Stop(); close(end); <-ended }
}

// snapshot is a Counter at one moment.
type snapshot struct {
	step        string
	done, total int64
}

func (c *Counter) snapshot() snapshot {
	step := c.step.Load()
	if step == nil {
		return snapshot{}
	}
	return snapshot{step: *step, done: c.done.Load(), total: c.total.Load()}
}

// line returns a line such as "progress: 1.2 GiB of 4.0 GiB (30 %), 52.0 MiB/s".
func (s snapshot) line(last snapshot, since time.Duration) string {
	if s.step != last.step {
		last.done = 0
	}
	rate := Bytes(int64(float64(max(s.done-last.done, 0))/since.Seconds())) + "/s"
	if s.total <= 0 {
		return fmt.Sprintf("%s: %s, %s", s.step, Bytes(s.done), rate)
	}
	return fmt.Sprintf("%s: %s of %s (%d %%), %s", s.step, Bytes(s.done), Bytes(s.total), percent(s.done, s.total), rate)
}

// percent does not multiply, which could overflow.
func percent(done, total int64) int64 { return min(int64(float64(done)/float64(total)*100), 100) }

// Bytes returns a number of bytes in binary units, as spec.model.sizeLimit has them: "512 B", "1.2 GiB".
func Bytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	for value >= 1023.95 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}

var units = []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
