// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/klauspost/compress/zstd"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/place"
	"github.com/modelbox-operator/modelbox-operator/kinds/filename"
)

const (
	fileMode       = 0o644
	executableMode = 0o755
	directoryMode  = 0o755
	// buffer is how many bytes are written at once.
	buffer = 256 << 10
)

// writer writes entries below a directory, and refuses what no archive may do.
type writer struct {
	*budget
	into *os.Root
	// inside is the directory that was made last; files of an archive mostly come by directory.
	inside string
	copied []byte
	files  int
	bytes  int64
}

// clean counts an entry, and returns its checked name.
func (w *writer) clean(name string) (string, error) {
	if err := w.entry(); err != nil {
		return "", err
	}
	clean, err := filename.Clean(name)
	if err != nil {
		return "", refused("has an entry %w: %s: pack it without", err, failure.Quote(name))
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
		return w.budget.directory()
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
	return refused("has two entries of one name: %s: pack it with one", failure.Quote(name))
}

// unknown is the size of a file of which only its end tells it.
const unknown = -1

// file writes a file of a size from a reader that has exactly so many bytes.
func (w *writer) file(name string, size int64, mode fs.FileMode, from io.Reader) error {
	if name == "." {
		return refused("has a file without a name: pack it without")
	}
	if size != unknown {
		if err := w.budget.file(size); err != nil {
			return err
		}
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
	return errors.Join(w.fill(file, name, size, from), file.Close())
}

// fill writes the bytes of a file. Errors of the reader are errors of the archive, whose reader verifies sizes and checksums at its end.
func (w *writer) fill(file *os.File, name string, size int64, from io.Reader) error {
	source := &archiveReader{from: from}
	content := &counted{file: file, w: w, size: size}
	_, err := io.CopyBuffer(content, source, w.copied)
	w.files++
	switch {
	case source.err != nil:
		return damaged(source.err)
	case errors.Is(err, errMore):
		return refused("has other sizes than it says: %s: pack it anew", failure.Quote(name))
	case err == nil && size != unknown && content.written < size:
		return damaged(io.ErrUnexpectedEOF)
	}
	return err
}

// counted counts what is written, and hides the file's other methods, so that io.CopyBuffer uses its buffer.
type counted struct {
	file          *os.File
	w             *writer
	size, written int64
}

var errMore = errors.New("there is more than was said")

func (c *counted) Write(bytes []byte) (int, error) {
	next := c.written + int64(len(bytes))
	if c.size == unknown {
		if err := c.w.reserve(place.InBlocks(next) - place.InBlocks(c.written)); err != nil {
			return 0, err
		}
	} else if next > c.size {
		return 0, errMore
	}
	n, err := c.file.Write(bytes)
	c.written += int64(n)
	c.w.bytes += int64(n)
	c.w.limits.Counter.Add(int64(n))
	return n, err
}

// archiveReader keeps the error of a reader apart from those of the file that is written.
type archiveReader struct {
	from io.Reader
	err  error
}

func (a *archiveReader) Read(into []byte) (int, error) {
	n, err := a.from.Read(into)
	if err != nil && err != io.EOF {
		a.err = err
	}
	return n, err
}

// damaged returns the error for an archive that cannot be read. Bounds that were exceeded while reading stay what they are.
func damaged(err error) error {
	if f, ok := errors.AsType[*failure.Failure](err); ok {
		return f
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return refused("ends too early: pack or upload it anew")
	}
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return refused("needs more than 32 MiB of memory to unpack: compress it without --long and with at most --ultra -20")
	}
	return refused("is damaged (%w): pack or upload it anew", err)
}
