// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/filename"
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

func newWriter(into *os.Root, budget *budget) *writer {
	return &writer{budget: budget, into: into, inside: ".", copied: make([]byte, buffer)}
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
	for end := 0; end < len(name); end++ {
		next := strings.IndexByte(name[end:], '/')
		if next < 0 {
			next = len(name) - end
		}
		end += next
		if err := w.mkdir(name[:end]); err != nil {
			return err
		}
	}
	w.inside = name
	return nil
}

func (w *writer) mkdir(name string) error {
	err := w.into.Mkdir(name, directoryMode)
	if err == nil {
		return w.budget.directory()
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := w.into.Lstat(name)
	if err == nil && !info.IsDir() {
		return twice(name)
	}
	return err
}

func twice(name string) error {
	return refused("has two entries of one name: %s: pack it with one", failure.Quote(name))
}

// file writes a file of a size from a reader that has exactly so many bytes.
func (w *writer) file(name string, size int64, mode fs.FileMode, from io.Reader) error {
	if name == "." {
		return refused("has a file without a name: pack it without")
	}
	if err := w.budget.file(size); err != nil {
		return err
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

// fill writes size bytes. Errors of the reader are errors of the archive.
func (w *writer) fill(file *os.File, name string, size int64, from io.Reader) error {
	source := &archiveReader{from: from}
	n, err := io.CopyBuffer(counted{file, w}, io.LimitReader(source, size), w.copied)
	if err == nil && n == size {
		_, err = source.Read(w.copied[:1]) // The reader verifies the size and the checksum at its end.
	}
	w.files++
	switch {
	case source.err != nil:
		return damaged(source.err)
	case err == nil:
		return refused("has other sizes than it says: %s: pack it anew", failure.Quote(name))
	case errors.Is(err, io.EOF) && n == size:
		return nil
	case errors.Is(err, io.EOF):
		return damaged(io.ErrUnexpectedEOF)
	}
	return err
}

// counted counts what is written, and hides the file's other methods, so that io.CopyBuffer uses its buffer.
type counted struct {
	file *os.File
	w    *writer
}

func (c counted) Write(bytes []byte) (int, error) {
	n, err := c.file.Write(bytes)
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
	return refused("is damaged (%w): pack or upload it anew", err)
}
