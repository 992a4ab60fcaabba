// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package unpack_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/unpack"
)

func FuzzUnpackZip(f *testing.F) {
	f.Add(zipOf(f, nil, "a/b", "content", "c/", "", "../d", "x"))
	f.Add(zipOf(f, nil, "a", strings.Repeat("x", 500)))
	fuzz(f, "zip")
}

func FuzzUnpackTar(f *testing.F) {
	seedTar(f, func(content []byte) []byte { return content })
	fuzz(f, "tar")
}

func FuzzUnpackTarGzip(f *testing.F) {
	seedTar(f, gzipOf)
	fuzz(f, "tar.gz")
}

func FuzzUnpackTarZstd(f *testing.F) {
	seedTar(f, func(content []byte) []byte { return zstdOf(content) })
	fuzz(f, "tar.zst")
}

func FuzzUnpackGzip(f *testing.F) {
	f.Add(gzipOf([]byte("content")))
	fuzz(f, "gz")
}

func seedTar(f *testing.F, compress func([]byte) []byte) {
	f.Add(compress(tarOf(f, entry{name: "a/b", body: "content"}, entry{name: "../d", body: "x"})))
	f.Add(compress(tarOf(f, entry{name: strings.Repeat("long/", 40) + "a", body: strings.Repeat("x", 600)})))
}

// fuzz checks that nothing is written outside of the directory, that the bounds hold, that there are only files and
// directories, and that each error has a word.
func fuzz(f *testing.F, format string) {
	bounds := unpack.Limits{MaxFiles: 20, MaxBytes: 1 << 20, MaxRatio: 10, RatioFrom: 1 << 16}
	f.Fuzz(func(t *testing.T, archive []byte) {
		into, unpacked, err := try(t, format, archive, bounds)
		if err != nil && failure.Of(err).Word != failure.RefusedArchive && failure.Of(err).Word != failure.TooBig {
			t.Errorf("an error without a word: %v", err)
		}
		checkBounds(t, into, bounds, unpacked, err == nil)
	})
}

func checkBounds(t *testing.T, into string, bounds unpack.Limits, unpacked unpack.Unpacked, complete bool) {
	var files, directories int
	var bytes int64
	err := filepath.WalkDir(into, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		switch {
		case err != nil:
			return err
		case info.IsDir():
			directories++
		case info.Mode().IsRegular():
			files++
			bytes += info.Size()
		default:
			t.Errorf("%s is %s", path, info.Mode())
		}
		return nil
	})
	if err != nil || files > bounds.MaxFiles || directories > bounds.MaxFiles+2 || bytes > bounds.MaxBytes {
		t.Errorf("%d files, %d directories, %d bytes, %v", files, directories, bytes, err)
	}
	if complete && (files != unpacked.Files || bytes != unpacked.Bytes || files == 0) {
		t.Errorf("%d files with %d bytes are there, and %v was said", files, bytes, unpacked)
	}
}
