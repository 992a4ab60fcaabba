// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"bufio"
	"cmp"
	"compress/bzip2"
	"errors"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	// maxWindow is how many bytes of a frame a Zstandard decoder must remember. "zstd -19" needs 8 MiB, "zstd --ultra -20" 32 MiB, and "zstd --long" more.
	maxWindow = 32 << 20
	// tarBlock is the unit of a tar.
	tarBlock = 512
)

// decompress unpacks a tar, compressed or not, or one file that is compressed, which gets the name.
func decompress(format string, archive io.Reader, w *writer, name string) error {
	content, err := decompressor(format, bufio.NewReaderSize(archive, buffer))
	if err != nil {
		return damaged(err)
	}
	from := &stream{from: content, w: w}
	if strings.HasPrefix(format, "tar") {
		return untar(from, w)
	}
	return w.file(name, fileMode, from)
}

// untar unpacks a tar.
func untar(stream *stream, w *writer) error {
	reader := tar.NewReader(stream)
	for {
		before := stream.read
		header, err := reader.Next()
		switch {
		case errors.Is(err, io.EOF) && stream.read-before < tarBlock: // Before the block of zeros that ends a tar.
			return damaged(io.ErrUnexpectedEOF)
		case errors.Is(err, io.EOF):
			_, err = io.Copy(io.Discard, stream) // At its end are the checksums of what is compressed.
			return damaged(err)
		case err != nil:
			return damaged(err)
		}
		if err := untarEntry(w, reader, header); err != nil {
			return err
		}
	}
}

// decompressor returns what a format's archive has inside.
func decompressor(format string, archive io.Reader) (io.Reader, error) {
	switch compression(format) {
	case "gz":
		return gzip.NewReader(archive)
	case "zst":
		// With one decoder, nothing has to be closed.
		return zstd.NewReader(archive, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	case "bz2":
		return bzip2.NewReader(archive), nil // It remembers at most 900 kB.
	}
	return archive, nil
}

// stream counts what comes out of the decompressor.
type stream struct {
	from io.Reader
	w    *writer
	read int64
}

func (s *stream) Read(into []byte) (int, error) {
	n, err := s.from.Read(into)
	s.read += int64(n)
	if bounds := s.w.decompress(int64(n)); bounds != nil {
		return 0, bounds
	}
	return n, err
}

// untarEntry writes one entry.
func untarEntry(w *writer, reader io.Reader, header *tar.Header) error {
	if header.Typeflag == tar.TypeXGlobalHeader {
		return w.entry() // What git archive writes. The reader has read its data.
	}
	name, err := w.clean(header.Name)
	if err != nil {
		return err
	}
	if kind := unwanted(header); kind != "" {
		return refused("has a %s: %s: pack the files themselves", kind, header.Name)
	}
	if header.Typeflag == tar.TypeDir {
		return w.directory(name)
	}
	return w.file(name, header.FileInfo().Mode(), reader)
}

// neverUnpacked are the names of the entries that are never unpacked.
var neverUnpacked = map[byte]string{
	tar.TypeSymlink: "symbolic link", tar.TypeLink: "hard link", tar.TypeChar: "device", tar.TypeBlock: "device", tar.TypeFifo: "FIFO",
	tar.TypeGNUSparse: "sparse file",
}

// unwanted names an entry that is neither a file nor a directory.
func unwanted(header *tar.Header) string {
	for key := range header.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return "sparse file"
		}
	}
	if header.Typeflag == tar.TypeReg || header.Typeflag == tar.TypeDir {
		return ""
	}
	return cmp.Or(neverUnpacked[header.Typeflag], "entry of an unknown type")
}
