// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"time"
)

const (
	// A line is followed by the next one after the time that it took, but not before it can be
	// read (readLine and readCharacter), and not after longestWait.
	readLine      = 120 * time.Millisecond
	readCharacter = 4 * time.Millisecond
	longestWait   = 1500 * time.Millisecond
	// beforeStep is the pause before the title of a step, and atTheEnd that before it plays again.
	beforeStep = 1200 * time.Millisecond
	atTheEnd   = 6 * time.Second
)

// bold is how the title of a step begins (ECMA-48 SGR 1).
var bold = regexp.MustCompile(`^\x1b\[1m`)

// pace returns when each line is shown, and when it plays again.
func pace(lines []line) (shown []time.Duration, end time.Duration) {
	for i, l := range lines {
		if i > 0 {
			end += gap(lines[i-1], l)
		}
		shown = append(shown, end)
	}
	return shown, end + atTheEnd
}

// gap is the time between two lines.
func gap(before, after line) time.Duration {
	read := time.Duration(0)
	if text := plain(before.text); text != "" {
		read = readLine + readCharacter*time.Duration(len(text))
	}
	if bold.MatchString(after.text) {
		read += beforeStep
	}
	return max(read, min(after.at-before.at, longestWait))
}
