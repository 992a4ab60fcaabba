// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// maxLine is the length in bytes from which a line is written in pieces.
const maxLine = 64 << 10

// colours tell the programs apart on a terminal (ECMA-48 SGR).
var colours = []int{36, 35, 33, 32}

// Output puts the lines of several programs into one stream, each after the
// name of who wrote it and never mixed within a line.
type Output struct {
	out    io.Writer
	colour bool

	mu      sync.Mutex
	colours map[string]int // By name: a program that is started again keeps its own.
}

// NewOutput returns an Output that writes to out, with coloured names if
// colour is true.
func NewOutput(out io.Writer, colour bool) *Output {
	return &Output{out: out, colour: colour, colours: map[string]int{}}
}

// writer returns what a program of the given name writes to.
func (o *Output) writer(name string) *lineWriter {
	o.mu.Lock()
	defer o.mu.Unlock()
	prefix := fmt.Sprintf("%-10s | ", name)
	if _, known := o.colours[name]; !known {
		o.colours[name] = colours[len(o.colours)%len(colours)]
	}
	if o.colour {
		prefix = fmt.Sprintf("\x1b[%dm%s\x1b[0m", o.colours[name], prefix)
	}
	return &lineWriter{output: o, prefix: prefix}
}

// lineWriter holds back what is not a whole line yet.
type lineWriter struct {
	output *Output
	prefix string
	held   []byte
}

// Write implements [io.Writer].
func (w *lineWriter) Write(p []byte) (int, error) {
	w.held = append(w.held, p...)
	for {
		end := bytes.IndexByte(w.held, '\n')
		if end < 0 && len(w.held) < maxLine {
			return len(p), nil
		}
		if end < 0 {
			end = len(w.held)
		}
		if err := w.line(w.held[:end]); err != nil {
			return 0, err
		}
		w.held = w.held[min(end+1, len(w.held)):]
	}
}

// Close writes a last line that had no end.
func (w *lineWriter) Close() error {
	if len(w.held) == 0 {
		return nil
	}
	return w.line(w.held)
}

func (w *lineWriter) line(line []byte) error {
	w.output.mu.Lock()
	defer w.output.mu.Unlock()
	_, err := fmt.Fprintf(w.output.out, "%s%s\n", w.prefix, line)
	return err
}
