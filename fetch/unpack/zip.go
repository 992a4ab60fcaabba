// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/zip"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"math"
	"slices"

	"github.com/klauspost/compress/flate"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
)

const (
	// maxDirectory bounds the bytes of a zip's directory, which is in memory while the zip is unpacked.
	maxDirectory = 16 << 20
	// The least sizes of the header before each entry's data, and of its header in the directory.
	localHeader, directoryHeader = 30, 46
	// Flags of an entry that is encrypted, or has its header encrypted (APPNOTE.TXT, 4.4.4).
	encrypted = 0x1 | 0x40 | 0x2000
)

// unzip unpacks a zip of size bytes.
func unzip(archive io.ReaderAt, size int64, w *writer) error {
	bounded := &boundedReaderAt{archive, maxDirectory}
	reader, err := zip.NewReader(bounded, size)
	if err != nil {
		return damaged(err)
	}
	bounded.left = math.MaxInt
	reader.RegisterDecompressor(zip.Deflate, flate.NewReader) // It is about twice as fast as the standard library's.
	if err := w.checkCount(len(reader.File)); err != nil {
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

// boundedReaderAt bounds how much is read in all.
type boundedReaderAt struct {
	io.ReaderAt
	left int
}

func (b *boundedReaderAt) ReadAt(into []byte, at int64) (int, error) {
	if at < 0 { // As the zip says, and not the volume.
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.ReaderAt.ReadAt(into, at)
	if b.left -= n; b.left < 0 {
		return 0, failure.New(failure.TooBig, "the archive has a directory of more than 16 MiB: pack fewer files, or use tar")
	}
	return n, err
}

// extent is where the data of an entry are in the zip, from the least possible beginning of their header.
type extent struct{ begin, end int64 }

// checkRanges refuses entries that share their data, as bombs do (https://www.bamsoftware.com/hacks/zipbomb/), or have them
// outside of the file, and a directory of which not all entries were read: the library compares their count modulo 65,536, so that at least
// so many headers are after the data, and of no entry.
func checkRanges(files []*zip.File, size int64) error {
	extents, unread := make([]extent, 0, len(files)), size
	for _, file := range files {
		offset, err := file.DataOffset()
		if err != nil {
			return damaged(err)
		}
		if offset > size || file.CompressedSize64 > uint64(size-offset) { //nolint:gosec // Neither is negative.
			return damaged(io.ErrUnexpectedEOF)
		}
		unread -= int64(directoryHeader + len(file.Name) + len(file.Extra) + len(file.Comment))
		extents = append(extents, extent{begin: offset - localHeader - int64(len(file.Name)), end: offset + int64(file.CompressedSize64)}) //nolint:gosec // It is at most size.
	}
	slices.SortFunc(extents, func(a, b extent) int { return cmp.Compare(a.end, b.end) })
	for i := 1; i < len(extents); i++ {
		if extents[i].begin < extents[i-1].end {
			return refused("has entries that overlap: pack it anew")
		}
	}
	if len(extents) > 0 && unread-extents[len(extents)-1].end >= directoryHeader<<16 {
		return refused("is damaged (its directory has other entries than were read): pack or upload it anew")
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
	if file.CRC32 == 0 && file.UncompressedSize64 > 0 { // The library does not verify it.
		return refused("has a file without a checksum: %s: pack it anew, or use tar", file.Name)
	}
	reader, err := file.Open()
	if err != nil {
		return damaged(err)
	}
	return errors.Join(w.file(name, file.Mode(), &stream{from: reader, w: w}), reader.Close())
}

// checkZipEntry refuses entries that are neither files nor directories, and those that cannot be read.
func checkZipEntry(file *zip.File) error {
	shown, mode := file.Name, file.Mode()
	switch {
	case file.Flags&encrypted != 0:
		return refused("is encrypted: %s: pack it without a password", shown)
	case mode&fs.ModeSymlink != 0:
		return refused("has a symbolic link: %s: pack the files themselves", shown)
	case !mode.IsDir() && !mode.IsRegular():
		return refused("has a device or FIFO: %s: pack the files themselves", shown)
	case file.Method != zip.Store && file.Method != zip.Deflate:
		return refused("has a file compressed by the method %d: %s: use deflate", file.Method, shown)
	case mode.IsDir() && file.UncompressedSize64 > 0,
		file.Method == zip.Store && file.UncompressedSize64 != file.CompressedSize64:
		return refused("has other sizes than it says: %s: pack it anew", shown)
	}
	return nil
}
