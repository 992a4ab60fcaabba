// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// maxDepth is how deep values are read. A pod template has about twenty levels.
//
// JSON decoders and the API server accept at most 10,000 levels. The API server sends an
// object with 10,000 levels in an event or in a list, which adds one or two levels: each
// client that watches objects of the kind would get an error instead of the event.
const maxDepth = 1000

// cutter reads JSON values, and writes 0 for what is below maxDepth.
type cutter struct {
	depth         int
	text, escaped bool
}

// cut does so in place, with the next part of the text, and returns what is left of it.
func (c *cutter) cut(part []byte) []byte {
	kept := part[:0]
	for len(part) > 0 {
		if c.depth > maxDepth {
			part = part[c.skip(part):]
			continue
		}
		end := c.pass(part)
		kept = append(kept, part[:end]...)
		if end == len(part) {
			break
		}
		kept = append(kept, '0') // In the place of the bracket.
		part = part[end+1:]
	}
	return kept
}

// pass goes over what stays, and returns where it ends: at the bracket that is one level
// too deep, or with the part.
func (c *cutter) pass(part []byte) int {
	for i, b := range part {
		if ordinary[b] {
			c.escaped = false
		} else if c.step(b); c.depth > maxDepth {
			return i
		}
	}
	return len(part)
}

// skip goes over what is too deep, and returns where that ends.
func (c *cutter) skip(part []byte) int {
	for i, b := range part {
		if c.step(b); c.depth <= maxDepth {
			return i + 1
		}
	}
	return len(part)
}

// ordinary are the characters that neither nest nor quote.
var ordinary = func() (table [256]bool) {
	for b := range table {
		table[b] = !strings.ContainsRune(`{}[]"\`, rune(b))
	}
	return table
}()

func (c *cutter) step(b byte) {
	switch {
	case c.escaped:
		c.escaped = false
	case c.text:
		c.escaped, c.text = b == '\\', b != '"'
	case b == '"':
		c.text = true
	case b == '{' || b == '[':
		c.depth++
	case b == '}' || b == ']':
		c.depth--
	}
}

// deepList is list for data that is too deep to be decoded, and false for any other.
func (o objects) deepList(data []byte, into runtime.Object) bool {
	kept := new(cutter).cut(slices.Clone(data))
	return len(kept) < len(data) && o.list(kept, into)
}

// framer is a framer that reads frames without what is below maxDepth.
type framer struct{ runtime.Framer }

func (f framer) NewFrameReader(r io.ReadCloser) io.ReadCloser {
	return f.Framer.NewFrameReader(&cutReader{ReadCloser: r})
}

type cutReader struct {
	io.ReadCloser
	cutter cutter
}

func (r *cutReader) Read(p []byte) (int, error) {
	for {
		n, err := r.ReadCloser.Read(p)
		if kept := r.cutter.cut(p[:n]); len(kept) > 0 || err != nil || n == 0 {
			return len(kept), err
		}
	}
}
