// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package unpack_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/modelbox-operator/modelbox-operator/fetch/unpack"
)

// BenchmarkUnpack unpacks 64 MiB of bytes that compress to about half, as weights do at best.
func BenchmarkUnpack(b *testing.B) {
	source := rand.New(rand.NewPCG(1, 2))
	weights := make([]byte, 64<<20)
	for i := range weights {
		if i%2 == 0 {
			weights[i] = byte(source.Uint32())
		}
	}
	tarred := tarOf(b, entry{name: "weights.bin", body: string(weights)})
	for format, archive := range map[unpack.Format][]byte{
		unpack.Tar: tarred, unpack.TarGzip: gzipOf(tarred), unpack.TarZstd: zstdOf(tarred), unpack.Zip: zipOf(b, nil, "weights.bin", string(weights)),
	} {
		b.Run(string(format), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "archive")
			if err := os.WriteFile(path, archive, 0o600); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(weights)))
			b.ReportAllocs()
			for b.Loop() {
				unpackOnce(b, format, path, int64(len(archive)))
			}
		})
	}
}

func unpackOnce(b *testing.B, format unpack.Format, path string, size int64) {
	directory, err := os.MkdirTemp(b.TempDir(), "")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(directory)
	file, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	root, err := os.OpenRoot(directory)
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	if _, err := unpack.Archive(format, file, size, root, unpack.Limits{MaxFiles: 10, MaxBytes: 1 << 30, MaxRatio: 1000}); err != nil {
		b.Fatal(err)
	}
}
