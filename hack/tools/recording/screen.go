// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"time"
)

// line is a line of the terminal, with the codes of its colours, and the time at which it was complete.
type line struct {
	text string
	at   time.Duration
}

// screen has the lines that a terminal shows. It knows what the demo uses: lines, colours (ECMA-48
// SGR), and a last line that is written again after a carriage return.
type screen struct {
	lines   []line
	current string
	// returned says that the next character begins the current line again.
	returned bool
	// rest is the beginning of a code whose end has not been read yet.
	rest string
}

// eraseLine clears the current line (ECMA-48 EL).
const eraseLine = "\x1b[K"

func (s *screen) write(output string, at time.Duration) {
	output, s.rest = s.rest+output, ""
	for output != "" {
		switch {
		case len(output) < len(eraseLine) && strings.HasPrefix(eraseLine, output):
			s.rest = output
			return
		case output[0] == '\n':
			s.lines = append(s.lines, line{s.current, at})
			s.current, s.returned = "", false
		case output[0] == '\r':
			s.returned = true
		case strings.HasPrefix(output, eraseLine):
			s.current, output = "", output[len(eraseLine)-1:]
		default:
			if s.returned {
				s.current, s.returned = "", false
			}
			s.current += output[:1]
		}
		output = output[1:]
	}
}
