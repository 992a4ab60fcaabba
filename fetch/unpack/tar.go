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

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
)

const (
	// maxWindow is how many bytes of a frame a Zstandard decoder must remember. "zstd -19" needs 8 MiB, "zstd --ultra -20" 32 MiB, and "zstd --long" more.
	maxWindow = 32 << 20
	// tarBlock is the unit of a tar.
	tarBlock = 512
)

// untar unpacks a tar, compressed or not.
func untar(format Format, archive io.Reader, w *writer) error {
	content, closer, err := decompressor(format, bufio.NewReaderSize(archive, buffer))
	if err != nil {
		return damaged(err)
	}
	defer closer()
	stream := &stream{from: content, budget: w.budget}
	reader := tar.NewReader(stream)
	var end int64 // Where the next header is expected.
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return stream.finish(end)
		}
		if err != nil {
			return damaged(err)
		}
		begin := stream.read
		size, err := untarEntry(w, reader, header)
		if err != nil {
			return err
		}
		end = begin + (size+tarBlock-1)/tarBlock*tarBlock
	}
}

// decompress unpacks one file that is compressed.
func decompress(format Format, compressed io.Reader, w *writer, name string) error {
	content, closer, err := decompressor(format, bufio.NewReaderSize(compressed, buffer))
	if err != nil {
		return damaged(err)
	}
	defer closer()
	return w.file(name, unknown, fileMode, &stream{from: content, budget: w.budget})
}

// decompressor returns what a format's archive has inside. The function it returns releases memory.
func decompressor(format Format, archive io.Reader) (io.Reader, func(), error) {
	switch format.compression() {
	case "gz":
		reader, err := gzip.NewReader(archive)
		return reader, func() {}, err
	case "zst":
		reader, err := zstd.NewReader(archive, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, err
		}
		return reader, reader.Close, nil
	case "bz2":
		return bzip2.NewReader(archive), func() {}, nil // It remembers at most 900 kB.
	}
	return archive, func() {}, nil
}

// stream counts what comes out of the decompressor.
type stream struct {
	from   io.Reader
	budget *budget
	read   int64
}

func (s *stream) Read(into []byte) (int, error) {
	n, err := s.from.Read(into)
	s.read += int64(n)
	if bounds := s.budget.decompress(int64(n)); bounds != nil {
		return 0, bounds
	}
	return n, err
}

// finish checks that the archive has its end: at least one block of zeros where the next header would be, and, which
// verifies the checksums of what is compressed, the end of the compressed data.
func (s *stream) finish(end int64) error {
	if s.read < end+tarBlock {
		return damaged(io.ErrUnexpectedEOF)
	}
	if _, err := io.Copy(io.Discard, s); err != nil {
		return damaged(err)
	}
	return nil
}

// untarEntry writes one entry. It returns the size of the entry's data.
func untarEntry(w *writer, reader io.Reader, header *tar.Header) (int64, error) {
	if header.Typeflag == tar.TypeXGlobalHeader {
		return 0, w.entry() // What git archive writes. The reader has read its data.
	}
	name, err := w.clean(header.Name)
	if err != nil {
		return 0, err
	}
	if kind := unwanted(header); kind != "" {
		return 0, refused("has a %s: %s: pack the files themselves", kind, failure.Quote(header.Name))
	}
	if header.Typeflag == tar.TypeDir {
		return 0, w.directory(name)
	}
	return header.Size, w.file(name, header.Size, header.FileInfo().Mode(), reader)
}

// neverUnpacked are the names of the entries that are never unpacked.
var neverUnpacked = map[byte]string{
	tar.TypeSymlink: "symbolic link", tar.TypeLink: "hard link", tar.TypeChar: "device", tar.TypeBlock: "device", tar.TypeFifo: "FIFO",
	tar.TypeGNUSparse: "sparse file",
}

// unwanted names an entry that is neither a file nor a directory.
func unwanted(header *tar.Header) string {
	switch header.Typeflag {
	case tar.TypeReg:
		for key := range header.PAXRecords {
			if strings.HasPrefix(key, "GNU.sparse.") {
				return "sparse file"
			}
		}
		return ""
	case tar.TypeDir:
		return ""
	}
	return cmp.Or(neverUnpacked[header.Typeflag], "entry of an unknown type")
}
