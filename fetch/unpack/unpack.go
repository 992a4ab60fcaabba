// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package unpack writes the files of an archive into a directory. It refuses what could leave the directory or exceed the
// bounds, and it decodes nothing else than the archive.
package unpack

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
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
