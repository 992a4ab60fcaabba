// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"io"
	"sync"
)

const (
	// smallChunk is the first piece of memory of a body. Each connection may have one, so it
	// is counted by the number of connections.
	smallChunk = 4 << 10
	// largeChunk is every further one.
	largeChunk = 32 << 10
	// smallBody is the size in bytes up to which a body is read at once. A larger one waits
	// for its turn before it is read.
	smallBody = 256 << 10
)

var smallChunks, largeChunks = chunks(smallChunk), chunks(largeChunk)

func chunks(size int) *sync.Pool {
	return &sync.Pool{New: func() any { return new(make([]byte, size)) }}
}

// body is a complete body. Its memory is used again as soon as it has been read.
type body struct {
	chunks []*[]byte
	// length is the number of bytes in chunks, done that of those that have been read.
	length, done int64
}

// capacity is the number of bytes that the chunks have room for.
func (b *body) capacity() int64 {
	if len(b.chunks) == 0 {
		return 0
	}
	return smallChunk + int64(len(b.chunks)-1)*largeChunk
}

// room returns the free part of the last chunk.
func (b *body) room() []byte {
	last := *b.chunks[len(b.chunks)-1]
	return last[int64(len(last))-(b.capacity()-b.length):]
}

func (b *body) grow() {
	pool := largeChunks
	if len(b.chunks) == 0 {
		pool = smallChunks
	}
	b.chunks = append(b.chunks, pool.Get().(*[]byte))
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.done == b.length {
		return 0, io.EOF
	}
	index, at := b.position()
	chunk := (*b.chunks[index])[at:]
	n := copy(p, chunk[:min(int64(len(chunk)), b.length-b.done)])
	b.done += int64(n)
	if n == len(chunk) {
		b.recycle(index)
	}
	return n, nil
}

// position returns the chunk of the next byte, and its place in it.
func (b *body) position() (index int, at int64) {
	if b.done < smallChunk {
		return 0, b.done
	}
	rest := b.done - smallChunk
	return 1 + int(rest/largeChunk), rest % largeChunk
}

// Close implements io.Closer. A handler need not read a body to its end.
func (b *body) Close() error {
	b.done = b.length
	for index := range b.chunks {
		b.recycle(index)
	}
	return nil
}

func (b *body) recycle(index int) {
	chunk := b.chunks[index]
	b.chunks[index] = nil
	switch {
	case chunk == nil:
	case index == 0:
		smallChunks.Put(chunk)
	default:
		largeChunks.Put(chunk)
	}
}
