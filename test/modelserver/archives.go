// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"maps"
	"slices"
	"strings"
	"sync"
)

// The sizes of what is too big, in bytes.
const (
	// Big is what big.safetensors and the file in big.tar.gz have.
	Big = 32 << 20
	// bomb is what bomb.tar.zst unpacks to: less than the default of spec.model.sizeLimit.
	bomb = 16 << 30
)

// bodies returns what is served, by the last segment of its URL. It is not changed.
var bodies = sync.OnceValue(func() map[string][]byte {
	model := tarOf(Files())
	gz := gzipped(model)
	return map[string][]byte{
		"model.tar":       model,
		"model.tar.gz":    gz,
		"model.tar.zst":   framed(model),
		"model.zip":       zipOf(Files()),
		Weights:           Files()[Weights],
		"tiny-1.gguf":     GGUF(1),
		"tiny-2.gguf":     GGUF(2),
		"big.safetensors": make([]byte, Big),
		"big.tar.gz":      gzipped(tarOf(map[string][]byte{Weights: make([]byte, Big)})),
		// A copy that ended early.
		"truncated.tar.gz": gz[:len(gz)/2],
		"slip.tar.gz":      gzipped(tarOf(map[string][]byte{"../../x": []byte("x")})),
		"slip.zip":         zipOf(map[string][]byte{"../../x": []byte("x")}),
		"link.tar.gz":      gzipped(linkTo("/etc/passwd")),
		"bomb.tar.zst":     bombArchive(),
	}
})

// A bytes.Buffer never fails, so neither do the writers of archives in it.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func tarOf(files map[string][]byte) []byte {
	out := &bytes.Buffer{}
	w := tar.NewWriter(out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		must(w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))}))
		_, err := w.Write(files[name])
		must(err)
	}
	must(w.Close())
	return out.Bytes()
}

func linkTo(target string) []byte {
	out := &bytes.Buffer{}
	w := tar.NewWriter(out)
	must(w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: Weights, Linkname: target, Mode: 0o777}))
	must(w.Close())
	return out.Bytes()
}

func zipOf(files map[string][]byte) []byte {
	out := &bytes.Buffer{}
	w := zip.NewWriter(out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		to, err := w.Create(name)
		must(err)
		_, err = to.Write(files[name])
		must(err)
	}
	must(w.Close())
	return out.Bytes()
}

func gzipped(content []byte) []byte {
	out := &bytes.Buffer{}
	w := gzip.NewWriter(out)
	_, err := w.Write(content)
	must(err)
	must(w.Close())
	return out.Bytes()
}

// frame is how a zstd frame begins: without flags, and with a window of block bytes (RFC 8878, 3.1.1).
const frame = "\x28\xb5\x2f\xfd\x00\x38"

// block is the maximum of what a block stands for.
const block = 128 << 10

// framed returns a zstd frame of blocks that are not compressed, and of an empty last one.
func framed(content []byte) []byte {
	out := []byte(frame)
	for raw := range slices.Chunk(content, block) {
		size := len(raw) << 3
		out = append(append(out, byte(size), byte(size>>8), byte(size>>16)), raw...)
	}
	return append(out, 1, 0, 0)
}

// bombArchive returns half a megabyte that unpacks to a file of many gigabytes: a frame with its
// header, and one with blocks of zeros.
func bombArchive() []byte {
	header := &bytes.Buffer{}
	must(tar.NewWriter(header).WriteHeader(&tar.Header{Name: Weights, Mode: 0o644, Size: bomb}))
	zeros := strings.Repeat("\x02\x00\x10\x00", bomb/block)
	end := make([]byte, 1024) // Two blocks of zeros end an archive.
	return slices.Concat(framed(header.Bytes()), []byte(frame+zeros+"\x01\x00\x00"), framed(end))
}
