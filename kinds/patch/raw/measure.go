// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package raw

import (
	"bytes"
	"slices"
)

// Size is how much there is in a JSON value.
type Size struct {
	// Bytes is the length without the spaces between values.
	Bytes int
	// Items and Members are the numbers of items in lists and of members in objects, at
	// any depth, without those that Variables counts.
	Items, Members int
	// Variables is the number of items of the lists in variables. The members of these
	// items are not counted.
	Variables int
	// Depth is how many lists and objects are in each other.
	Depth int
}

// variables are the names of the lists that are long in a large pod: of environment
// variables, and of the words of a command line.
var variables = []string{"env", "envs", "command", "args"}

// Measure returns the size of a value. It reads each byte once. Unlike the other functions,
// it also ends with text that is not JSON.
func Measure(value []byte) Size {
	m := measure{size: Size{Bytes: len(value)}}
	for at := 0; at < len(value); at++ {
		switch c := value[at]; c {
		case '"':
			end := endOfText(value, at+1)
			m.key = value[at+1 : end]
			at = end
			m.value()
		case '{', '[':
			m.value()
			m.open(c)
		case '}', ']':
			m.close()
		case ':':
			m.colon()
		case ' ', '\t', '\r', '\n':
			m.size.Bytes--
		case ',':
		default:
			at = scalar(value, at) - 1
			m.value()
		}
	}
	return m.size
}

// most is how deep Measure knows what a value is in. What is deeper counts as items.
const most = 64

type measure struct {
	size  Size
	depth int
	key   []byte
	named bool // A colon is before the next value, so the last text was its key.
	in    [most + 1]holder
}

// holder is what a value is in.
type holder byte

const (
	inList holder = iota
	inObject
	inVariables // In one of the lists in variables.
	inVariable  // In an object in one of these lists.
)

func (m *measure) holder() holder { return m.in[min(m.depth, most)] }

// value counts a value, or a key, which counts when its colon is read.
func (m *measure) value() {
	switch {
	case m.depth == 0:
	case m.holder() == inList:
		m.size.Items++
	case m.holder() == inVariables:
		m.size.Variables++
	}
}

func (m *measure) colon() {
	m.named = true
	if m.holder() == inObject {
		m.size.Members++
	}
}

func (m *measure) open(bracket byte) {
	in := inList
	switch up := m.holder(); {
	case bracket == '{' && m.depth > 0 && (up == inVariables || up == inVariable):
		in = inVariable
	case bracket == '{':
		in = inObject
	case m.named && slices.Contains(variables, string(m.key)):
		in = inVariables
	}
	m.named = false
	m.depth++
	m.size.Depth = max(m.size.Depth, m.depth)
	if m.depth < most {
		m.in[m.depth] = in
	}
}

func (m *measure) close() {
	m.named = false
	m.depth = max(m.depth-1, 0)
}

// endOfText is closing for text that may not be JSON.
func endOfText(value []byte, at int) int {
	for {
		end := bytes.IndexAny(value[at:], `"\`)
		if end < 0 {
			return len(value)
		}
		if at += end; value[at] == '"' {
			return at
		}
		if at += len(`\n`); at >= len(value) {
			return len(value)
		}
	}
}
