// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// maxLine is the length in bytes above which a line is split.
const maxLine = 64 << 10

// colours are the colours of the programs' names on a terminal (ECMA-48 SGR).
var colours = []int{36, 35, 33, 32}

// Output writes the lines of several programs to one stream. Each line is complete and
// starts with the name of its program.
type Output struct {
	out    io.Writer
	colour bool

	mu      sync.Mutex
	colours map[string]int // By name: a program that is restarted keeps its colour.
}

// NewOutput returns an Output that writes to out, with coloured names if
// colour is true.
func NewOutput(out io.Writer, colour bool) *Output {
	return &Output{out: out, colour: colour, colours: map[string]int{}}
}

// writer returns the writer for the program with the given name.
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

// lineWriter buffers incomplete lines.
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

// Close writes a last line that does not end with a newline.
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
