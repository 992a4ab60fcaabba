// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"

	"github.com/klauspost/compress/flate"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
)

const (
	// maxDirectory bounds the bytes of a zip's directory, which is in memory while the zip is unpacked.
	maxDirectory = 16 << 20
	// The least sizes of the header before each entry's data, of its header in the directory, and of the directory's end.
	localHeader, directoryHeader, directoryEnd = 30, 46, 22
	// Flags of an entry that is encrypted, or has its header encrypted (APPNOTE.TXT, 4.4.4).
	encrypted = 0x1 | 0x40 | 0x2000
)

// unzip unpacks a zip of size bytes.
func unzip(archive io.ReaderAt, size int64, w *writer) error {
	bounded := &boundedReaderAt{from: archive, left: maxDirectory}
	reader, err := zip.NewReader(bounded, size)
	if err != nil {
		return damaged(err)
	}
	bounded.unbound = true
	reader.RegisterDecompressor(zip.Deflate, flate.NewReader) // It is about twice as fast as the standard library's.
	if err := w.checkCount(len(reader.File)); err != nil {
		return err
	}
	if err := checkDirectory(archive, size, reader.File); err != nil {
		return err
	}
	if err := checkRanges(reader.File, size); err != nil {
		return err
	}
	for _, file := range reader.File {
		if err := unzipEntry(w, file); err != nil {
			return err
		}
	}
	return nil
}

// boundedReaderAt bounds how much is read in all, until it is unbound.
type boundedReaderAt struct {
	from    io.ReaderAt
	left    int
	unbound bool
}

func (b *boundedReaderAt) ReadAt(into []byte, at int64) (int, error) {
	n, err := b.from.ReadAt(into, at)
	if b.unbound {
		return n, err
	}
	if b.left -= n; b.left < 0 {
		return 0, failure.New(failure.TooBig, "the archive has a directory of more than 16 MiB: pack fewer files, or use tar")
	}
	return n, err
}

// checkDirectory refuses a directory of which not all entries were read. The library compares their count modulo 65,536, which a
// directory with 65,537 entries passes whose second one is damaged.
func checkDirectory(archive io.ReaderAt, size int64, files []*zip.File) error {
	var read uint64
	for _, file := range files {
		read += uint64(directoryHeader + len(file.Name) + len(file.Extra) + len(file.Comment))
	}
	if said, err := directorySize(archive, size); err != nil || said != read {
		return refused("is damaged (its directory has other entries than it says): pack or upload it anew")
	}
	return nil
}

// directorySize returns how many bytes the directory has as the end of the zip says (APPNOTE.TXT, 4.3.14 to 4.3.16), which the library has
// found there.
func directorySize(archive io.ReaderAt, size int64) (uint64, error) {
	tail := make([]byte, min(size, directoryEnd+1<<16))
	if _, err := archive.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	at := len(tail) - directoryEnd
	for ; at >= 0; at-- {
		if bytes.HasPrefix(tail[at:], []byte("PK\x05\x06")) {
			break
		}
	}
	if at < 0 {
		return 0, io.ErrUnexpectedEOF
	}
	if said := binary.LittleEndian.Uint32(tail[at+12:]); said != 1<<32-1 {
		return uint64(said), nil
	}
	locator, end64 := tail[max(0, at-20):at], make([]byte, 48)
	if !bytes.HasPrefix(locator, []byte("PK\x06\x07")) {
		return 0, io.ErrUnexpectedEOF
	}
	_, err := archive.ReadAt(end64, int64(binary.LittleEndian.Uint64(locator[8:])&(1<<62-1)))
	return binary.LittleEndian.Uint64(end64[40:]), err
}

// extent is where the data of an entry are in the zip, from the least possible beginning of their header.
type extent struct{ begin, end int64 }

// checkRanges refuses entries that share their data, as bombs do (https://www.bamsoftware.com/hacks/zipbomb/), or have them
// outside of the file.
func checkRanges(files []*zip.File, size int64) error {
	extents := make([]extent, 0, len(files))
	for _, file := range files {
		offset, err := file.DataOffset()
		if err != nil {
			return damaged(err)
		}
		if offset > size || file.CompressedSize64 > uint64(size-offset) { //nolint:gosec // Neither is negative.
			return damaged(io.ErrUnexpectedEOF)
		}
		extents = append(extents, extent{begin: offset - localHeader - int64(len(file.Name)), end: offset + int64(file.CompressedSize64)}) //nolint:gosec // It is at most size.
	}
	slices.SortFunc(extents, func(a, b extent) int { return cmp.Compare(a.end, b.end) })
	for i := 1; i < len(extents); i++ {
		if extents[i].begin < extents[i-1].end {
			return refused("has entries that overlap: pack it anew")
		}
	}
	return nil
}

func unzipEntry(w *writer, file *zip.File) error {
	name, err := w.clean(file.Name)
	if err != nil {
		return err
	}
	if err := checkZipEntry(file); err != nil {
		return err
	}
	if file.Mode().IsDir() {
		return w.directory(name)
	}
	reader, err := file.Open()
	if err != nil {
		return damaged(err)
	}
	var content io.Reader = reader
	if file.CRC32 == 0 {
		content = &zeroChecksum{from: reader, hash: crc32.NewIEEE()}
	}
	size := int64(file.UncompressedSize64) //nolint:gosec // checkZipEntry bounds it.
	return errors.Join(w.file(name, size, file.Mode(), &stream{from: content, budget: w.budget}), reader.Close())
}

// zeroChecksum verifies a checksum of 0, which the library takes for none.
type zeroChecksum struct {
	from io.Reader
	hash hash.Hash32
}

func (z *zeroChecksum) Read(into []byte) (int, error) {
	n, err := z.from.Read(into)
	_, _ = z.hash.Write(into[:n]) // It never fails.
	if errors.Is(err, io.EOF) && z.hash.Sum32() != 0 {
		err = zip.ErrChecksum
	}
	return n, err
}

// checkZipEntry refuses entries that are neither files nor directories, and those that cannot be read.
func checkZipEntry(file *zip.File) error {
	shown, mode := failure.Quote(file.Name), file.Mode()
	switch {
	case file.Flags&encrypted != 0:
		return refused("is encrypted: %s: pack it without a password", shown)
	case mode&fs.ModeSymlink != 0:
		return refused("has a symbolic link: %s: pack the files themselves", shown)
	case !mode.IsDir() && !mode.IsRegular():
		return refused("has a device or FIFO: %s: pack the files themselves", shown)
	case file.Method != zip.Store && file.Method != zip.Deflate:
		return refused("has a file compressed by the method %d: %s: use deflate", file.Method, shown)
	case file.UncompressedSize64 > 1<<62, mode.IsDir() && file.UncompressedSize64 > 0,
		file.Method == zip.Store && file.UncompressedSize64 != file.CompressedSize64:
		return refused("has other sizes than it says: %s: pack it anew", shown)
	}
	return nil
}
