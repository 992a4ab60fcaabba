// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// maxDepth is the maximum nesting depth that is decoded. A pod template has about twenty
// levels.
//
// JSON decoders and the API server accept at most 10,000 levels. The API server sends an
// object with 10,000 levels in a watch event or in a list, which adds one or two levels, so
// that each client that watches objects of the kind would get an error instead of the event.
const maxDepth = 1000

// depthLimiter reads JSON, and writes 0 for each value that is nested deeper than maxDepth.
type depthLimiter struct {
	depth             int
	inString, escaped bool
}

// limit does so in place, with the next chunk of the JSON, and returns what is left of it.
func (l *depthLimiter) limit(chunk []byte) []byte {
	kept := chunk[:0]
	for len(chunk) > 0 {
		if l.depth > maxDepth {
			chunk = chunk[l.skip(chunk):]
			continue
		}
		end := l.keep(chunk)
		kept = append(kept, chunk[:end]...)
		if end == len(chunk) {
			break
		}
		kept = append(kept, '0') // In the place of the bracket.
		chunk = chunk[end+1:]
	}
	return kept
}

// keep returns how much of a chunk is not too deep: up to the bracket that opens one level
// too many, or all of it.
func (l *depthLimiter) keep(chunk []byte) int {
	for i, b := range chunk {
		if ordinary[b] {
			l.escaped = false
		} else if l.next(b); l.depth > maxDepth {
			return i
		}
	}
	return len(chunk)
}

// skip returns how much of a chunk is too deep.
func (l *depthLimiter) skip(chunk []byte) int {
	for i, b := range chunk {
		if l.next(b); l.depth <= maxDepth {
			return i + 1
		}
	}
	return len(chunk)
}

// ordinary are the characters that neither nest nor quote.
var ordinary = func() (table [256]bool) {
	for b := range table {
		table[b] = !strings.ContainsRune(`{}[]"\`, rune(b))
	}
	return table
}()

// next reads one character.
func (l *depthLimiter) next(b byte) {
	switch {
	case l.escaped:
		l.escaped = false
	case l.inString:
		l.escaped, l.inString = b == '\\', b != '"'
	case b == '"':
		l.inString = true
	case b == '{' || b == '[':
		l.depth++
	case b == '}' || b == ']':
		l.depth--
	}
}

// decodeDeepList fills a list from data that is nested too deep to be decoded, and returns
// false for any other data.
func (d objectDecoder) decodeDeepList(data []byte, into runtime.Object) bool {
	kept := new(depthLimiter).limit(slices.Clone(data))
	return len(kept) < len(data) && d.decodeList(kept, into)
}

// depthFramer is a framer whose frames are nested no deeper than maxDepth.
type depthFramer struct{ runtime.Framer }

func (f depthFramer) NewFrameReader(r io.ReadCloser) io.ReadCloser {
	return f.Framer.NewFrameReader(&depthReader{ReadCloser: r})
}

type depthReader struct {
	io.ReadCloser
	limiter depthLimiter
}

func (r *depthReader) Read(p []byte) (int, error) {
	for {
		n, err := r.ReadCloser.Read(p)
		if kept := r.limiter.limit(p[:n]); len(kept) > 0 || err != nil || n == 0 {
			return len(kept), err
		}
	}
}
