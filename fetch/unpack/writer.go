// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

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
