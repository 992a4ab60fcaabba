// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// The sizes of what is too big, in bytes.
const (
	// Big is what big.safetensors and the file in big.tar.gz have.
	Big = 32 << 20
	// bomb is what bomb.tar.zst unpacks to: less than the default of spec.model.sizeLimit.
	bomb = 16 << 30
	// zeros is a part of it that is compressed once.
	zeros = 16 << 20
)

// bodies returns what is served, by the last segment of its URL. It is not changed.
var bodies = sync.OnceValue(func() map[string][]byte {
	model := tarOf(Files())
	gz := gzipped(model)
	return map[string][]byte{
		"model.tar":       model,
		"model.tar.gz":    gz,
		"model.tar.zst":   compressed(model),
		"model.zip":       zipOf(Files()),
		Weights:           Files()[Weights],
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

// compressed returns a zstd frame, the same in every process.
func compressed(content []byte) []byte {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	must(err)
	return w.EncodeAll(content, nil)
}

// bombArchive returns a few hundred kilobytes that unpack to a file of many gigabytes. Frames
// may follow one another (RFC 8878, 3.1), so that one frame of zeros is enough to build it.
func bombArchive() []byte {
	header := &bytes.Buffer{}
	must(tar.NewWriter(header).WriteHeader(&tar.Header{Name: Weights, Mode: 0o644, Size: bomb}))
	out := bytes.NewBuffer(compressed(header.Bytes()))
	frame := compressed(make([]byte, zeros))
	for range bomb / zeros {
		out.Write(frame)
	}
	end := make([]byte, 1024) // Two blocks of zeros end an archive.
	_, err := io.Copy(out, bytes.NewReader(compressed(end)))
	must(err)
	return out.Bytes()
}
