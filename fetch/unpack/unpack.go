// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package unpack writes the files of an archive into a directory. It refuses what could leave the directory or exceed the
// bounds, and it decodes nothing else than the archive.
package unpack

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/place"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

const (
	fileMode       = 0o644
	executableMode = 0o755
	directoryMode  = 0o775
	// buffer is how many bytes are written at once.
	buffer = 256 << 10
)

// defaultRatioFrom is how many bytes any archive may have, however small it is.
const defaultRatioFrom = 100 << 20

// Limits bound what an archive may have.
type Limits struct {
	// MaxFiles is how many entries, and how many directories, an archive may have.
	MaxFiles int
	// MaxBytes is how many bytes the files may have on the volume.
	MaxBytes int64
	// MaxRatio is how many times the archive's size its content may have beyond RatioFrom bytes, which are 100 MiB if they are 0.
	MaxRatio, RatioFrom int64
	// Counter counts the bytes that are written; nil counts nothing.
	Counter *report.Counter
}

// endings are how the names of each format's files end, the longer ones first. gz, zst and bz2 are one file each.
var endings = []struct{ name, format string }{
	{".tar.gz", "tar.gz"}, {".tgz", "tar.gz"}, {".tar.zst", "tar.zst"}, {".tar.bz2", "tar.bz2"}, {".tbz2", "tar.bz2"}, {".tbz", "tar.bz2"},
	{".zip", "zip"}, {".tar", "tar"}, {".gz", "gz"}, {".zst", "zst"}, {".bz2", "bz2"},
}

// FormatOf returns the format that a file's name says, in lower or upper case, such as tar.gz; empty is a file that is not unpacked, whatever
// it has inside, such as .pt.
func FormatOf(name string) string {
	for _, ending := range endings {
		if len(name) > len(ending.name) && strings.HasSuffix(strings.ToLower(name), ending.name) {
			return ending.format
		}
	}
	return ""
}

// compression is what a format is compressed by: gz, zst, bz2, or the format itself.
func compression(format string) string { return strings.TrimPrefix(format, "tar.") }

// magic is what a file of a compression begins with. A tar has its magic number (or, as the oldest had, none) within its
// first header, whose checksum the reader verifies.
var magic = map[string]string{"zip": "PK\x03\x04", "gz": "\x1f\x8b\x08", "zst": "\x28\xb5\x2f\xfd", "bz2": "BZh"}

// checkMagic compares an archive's first bytes with its format.
func checkMagic(archive io.ReaderAt, format string) error {
	want := magic[compression(format)]
	begin := make([]byte, len(want))
	if _, err := archive.ReadAt(begin, 0); err != nil && err != io.EOF {
		return err
	}
	if skippable := "*M\x18"; string(begin) != want && (compression(format) != "zst" || string(begin[1:]) != skippable || begin[0]>>4 != 5) { // RFC 8878, 3.1.2.
		return refused("is no %s, as its name says: check the file, or name it as what it is", format)
	}
	return nil
}

// refused returns the error for an archive. The format completes "the archive ...".
func refused(format string, args ...any) error {
	return failure.New(failure.RefusedArchive, "the archive "+format, args...)
}

// Archive unpacks an archive of size bytes, which has this name, into a directory.
func Archive(name string, archive *os.File, size int64, into *os.Root, limits Limits) (Unpacked, error) {
	format := FormatOf(name)
	if err := checkMagic(archive, format); err != nil {
		return Unpacked{}, err
	}
	w := &writer{limits: limits, archive: size, into: into, inside: ".", copied: make([]byte, buffer)}
	var err error
	if format == "zip" {
		err = unzip(archive, size, w)
	} else {
		err = decompress(format, io.NewSectionReader(archive, 0, size), w, strings.TrimSuffix(name, path.Ext(name)))
	}
	if err == nil && w.Files == 0 {
		err = refused("has no files: check what was packed")
	}
	return w.Unpacked, err
}

// Unpacked is what was written.
type Unpacked struct {
	Files int
	Bytes int64
}

// writer writes entries below a directory, and refuses what no archive may do.
type writer struct {
	limits Limits
	// archive is the archive's size in bytes.
	archive int64
	// What it has used of its limits: entries and directories, bytes on the volume, and bytes that came out of the decompressor.
	entries, directories int
	volume, decompressed int64

	into *os.Root
	// inside is the directory that was made last; files of an archive mostly come by directory.
	inside string
	copied []byte
	Unpacked
}

// clean counts an entry, and returns its checked name.
func (w *writer) clean(name string) (string, error) {
	if err := w.entry(); err != nil {
		return "", err
	}
	clean, err := modeluri.Clean(name)
	if err != nil {
		return "", refused("has an entry %w: %s: pack it without", err, name)
	}
	return clean, nil
}

// directory makes a directory and those above it.
func (w *writer) directory(name string) error {
	if name == w.inside || name == "." {
		return nil
	}
	if err := w.directory(path.Dir(name)); err != nil {
		return err
	}
	w.inside = name
	err := w.into.Mkdir(name, directoryMode)
	if err == nil {
		w.directories++
		return errors.Join(w.checkCount(w.directories), w.reserve(place.Block))
	}
	if info, statErr := w.into.Lstat(name); statErr == nil && !info.IsDir() {
		return twice(name)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func twice(name string) error {
	return refused("has two entries of one name: %s: pack it with one", name)
}

// file writes a file from a reader, which verifies its size and checksum.
func (w *writer) file(name string, mode fs.FileMode, from io.Reader) error {
	if name == "." {
		return refused("has a file without a name: pack it without")
	}
	if err := w.directory(path.Dir(name)); err != nil {
		return err
	}
	permissions := fs.FileMode(fileMode)
	if mode&0o111 != 0 {
		permissions = executableMode
	}
	file, err := w.into.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, permissions)
	if errors.Is(err, fs.ErrExist) {
		return twice(name)
	}
	if err != nil {
		return err
	}
	w.Files++
	_, err = io.CopyBuffer(&counted{file: file, w: w}, from, w.copied)
	return errors.Join(damaged(err), file.Close())
}

// counted counts what is written, before it is, and hides the file's other methods, so that io.CopyBuffer uses its buffer.
type counted struct {
	file    *os.File
	w       *writer
	written int64
}

func (c *counted) Write(bytes []byte) (int, error) {
	if err := c.w.reserve(place.InBlocks(c.written+int64(len(bytes))) - place.InBlocks(c.written)); err != nil {
		return 0, err
	}
	n, err := c.file.Write(bytes)
	c.written += int64(n)
	c.w.Bytes += int64(n)
	c.w.limits.Counter.Add(int64(n))
	return n, err
}

// entry counts one entry of the archive.
func (w *writer) entry() error {
	w.entries++
	return w.checkCount(w.entries)
}

func (w *writer) checkCount(count int) error {
	if count > w.limits.MaxFiles {
		return failure.New(failure.TooBig, "the archive has more than %d files or directories: pack fewer", w.limits.MaxFiles)
	}
	return nil
}

// reserve counts bytes on the volume, before they are written.
func (w *writer) reserve(bytes int64) error {
	if bytes > w.limits.MaxBytes-w.volume {
		return failure.New(failure.TooBig,
			"the archive (%s) and its files, which are on the volume together, need more than spec.model.sizeLimit: raise it", report.Bytes(w.archive))
	}
	w.volume += bytes
	return nil
}

// decompress counts bytes that came out of the decompressor, written or not.
func (w *writer) decompress(bytes int64) error {
	w.decompressed += bytes
	if w.decompressed > cmp.Or(w.limits.RatioFrom, defaultRatioFrom) && w.decompressed/w.limits.MaxRatio > w.archive {
		return failure.New(failure.TooBig, "the archive becomes more than %d times as large: pack it without such compression", w.limits.MaxRatio)
	}
	return nil
}

// damaged returns the error for an archive that cannot be read. Bounds that were exceeded, and errors of the volume, stay what they are.
func damaged(err error) error {
	if f, ok := errors.AsType[*failure.Failure](err); ok {
		return f
	}
	if _, ofVolume := errors.AsType[*fs.PathError](err); ofVolume || err == nil {
		return err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return refused("ends too early: pack or upload it anew")
	}
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return refused("needs more than 32 MiB of memory to unpack: compress it without --long and with at most --ultra -20")
	}
	return refused("is damaged (%w): pack or upload it anew", err)
}
