// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"
)

// TestBody: what is written into a body is read from it, in pieces of any size.
func TestBody(t *testing.T) {
	t.Parallel()
	for _, length := range []int{0, 1, smallChunk - 1, smallChunk, smallChunk + 1, smallChunk + largeChunk, smallChunk + largeChunk + 1, 300_000} {
		want := make([]byte, length)
		for i := range want {
			want[i] = byte(rand.Uint32())
		}
		for name, reader := range map[string]func(io.Reader) io.Reader{
			"all": func(r io.Reader) io.Reader { return r }, "half": iotest.HalfReader, "a byte": iotest.OneByteReader,
		} {
			var b body
			fill(&b, want)
			got, err := io.ReadAll(reader(&b))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes, read by %s: %d bytes, %v", length, name, len(got), err)
			}
			for i, chunk := range b.chunks {
				if chunk != nil && b.length == b.capacity() {
					t.Errorf("%d bytes, read by %s: chunk %d is kept", length, name, i)
				}
			}
			b.Close()
			b.Close()
		}
	}
}

func fill(b *body, data []byte) {
	for len(data) > 0 {
		if b.length == b.capacity() {
			b.grow()
		}
		n := copy(b.room(), data)
		b.length += int64(n)
		data = data[n:]
	}
}

// TestBodyClosedEarly: a handler need not read all, and reads nothing after the end of its turn.
func TestBodyClosedEarly(t *testing.T) {
	t.Parallel()
	var b body
	fill(&b, make([]byte, 100_000))
	if _, err := io.ReadFull(&b, make([]byte, 50_000)); err != nil {
		t.Fatal(err)
	}
	b.Close()
	if n, err := b.Read(make([]byte, 10)); n != 0 || err != io.EOF { //nolint:errorlint // A Reader returns it as it is.
		t.Errorf("read %d bytes after Close: %v", n, err)
	}
}
