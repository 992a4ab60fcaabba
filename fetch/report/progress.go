// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

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
