// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// JSON that is not too deep is not changed, however it is split into chunks.
func TestDepthLimiterKeepsOrdinaryJSON(t *testing.T) {
	t.Parallel()
	texts := []string{
		``, `{}`, `[]`, `{"a":"}]{["}`, `{"a":"\"}","b":"\\"}{"c":[1,2,{"d":null}]}` + "\n", ` { "a" : [ ] } `, `"[[["`,
		strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `{"next":1}`,
	}
	for _, text := range texts {
		for size := range 7 {
			var l depthLimiter
			var got []byte
			for chunk := range chunks(text, size+1) {
				got = append(got, l.limit([]byte(chunk))...)
			}
			if diff := cmp.Diff(text, string(got)); diff != "" {
				t.Errorf("in chunks of %d (-want +got):\n%s", size+1, diff)
			}
		}
	}
}

func chunks(text string, size int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			n := min(size, len(text))
			if !yield(text[:n]) {
				return
			}
			text = text[n:]
		}
	}
}

// A value that is too deep becomes 0; what is beside it and after it stays.
func TestDepthLimiterReplacesDeepValues(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		over := 1 + r.IntN(12000)
		inner := oneOf(r, `1`, `"}]"`, `"\"{"`, `[]`, `{"x":{}}`)
		deep := strings.Repeat(`{"a":`, over) + inner + strings.Repeat(`}`, over)
		text := strings.Repeat(`{"a":`, maxDepth) + deep + `,"b":[1]` + strings.Repeat(`}`, maxDepth) + "\n" + `{"next":"]"}`
		want := strings.Repeat(`{"a":`, maxDepth) + `0,"b":0` + strings.Repeat(`}`, maxDepth) + "\n" + `{"next":"]"}`
		var stream io.Reader = strings.NewReader(text)
		if r.IntN(2) == 0 {
			stream = iotest.OneByteReader(stream)
		}
		got, err := io.ReadAll(&depthReader{ReadCloser: io.NopCloser(stream)})
		if err != nil || string(got) != want {
			t.Fatalf("%d levels with %s in them: error %v, %d bytes, want %d", over, inner, err, len(got), len(want))
		}
	}
}

func oneOf(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

// A watch reads an event that is too deep for JSON decoders, and the one after it.
func TestFramesOfDeepEvents(t *testing.T) {
	t.Parallel()
	const levels = 10000
	deep := strings.Repeat(`{"a":`, levels) + `1` + strings.Repeat(`}`, levels)
	stream := `{"type":"ADDED","object":` + deep + "}\n" + `{"type":"DELETED","object":{}}` + "\n"
	reader := depthFramer{json.Framer}.NewFrameReader(io.NopCloser(strings.NewReader(stream)))
	var frames [][]byte
	for buffer := make([]byte, 1<<20); ; {
		n, err := reader.Read(buffer)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, bytes.Clone(buffer[:n]))
	}
	if len(frames) != 2 || !bytes.HasPrefix(frames[0], []byte(`{"type":"ADDED"`)) || string(frames[1]) != `{"type":"DELETED","object":{}}` {
		t.Errorf("%d frames: %.60q", len(frames), frames)
	}
}

func BenchmarkDepthLimiter(b *testing.B) {
	text := []byte(strings.Repeat(`{"metadata":{"name":"box","labels":{"team":"serving"}},"spec":{"image":"registry.example.com/a/b:1","replicas":3}}`, 40))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		var l depthLimiter
		l.limit(text)
	}
}
