// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package unpack writes the files of an archive into a directory. It refuses what could leave the directory or exceed the
// bounds, and it decodes nothing else than the archive.
package unpack

import (
	"bytes"
	"io"
	"os"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
)

// Format is how an archive is written.
type Format string

// The formats. Plain is a file that is not unpacked, whatever it has inside.
const (
	Plain   Format = ""
	Zip     Format = "zip"
	Tar     Format = "tar"
	TarGzip Format = "tar.gz"
	TarZstd Format = "tar.zst"
)

// FormatOf returns the format that a file's name says, in lower or upper case. Formats of models that are archives inside, such as .pt, are
// plain.
func FormatOf(name string) Format {
	endings := map[string]Format{".zip": Zip, ".tar": Tar, ".tar.gz": TarGzip, ".tgz": TarGzip, ".tar.zst": TarZstd}
	for ending, format := range endings {
		if len(name) > len(ending) && strings.HasSuffix(strings.ToLower(name), ending) {
			return format
		}
	}
	return Plain
}

// magic is what a file of a format begins with. A tar has its magic number (or, as the oldest had, none) within its
// first header, whose checksum the reader verifies.
var magic = map[Format][]byte{
	Zip:     []byte("PK\x03\x04"),
	TarGzip: {0x1f, 0x8b, 0x08},
	TarZstd: {0x28, 0xb5, 0x2f, 0xfd},
}

// checkMagic compares an archive's first bytes with its format, so that an answer like an HTML page is named as such.
func checkMagic(archive io.ReaderAt, format Format) error {
	want := magic[format]
	begin := make([]byte, 64)
	n, err := archive.ReadAt(begin, 0)
	if err != nil && err != io.EOF {
		return err
	}
	begin = begin[:n]
	if bytes.HasPrefix(begin, want) {
		return nil
	}
	if looksLikeHTML(begin) {
		return refused("is a web page and no %s: use the URL that downloads the file itself", format)
	}
	return refused("is no %s, as its name says: check the file, or name it as what it is", format)
}

func looksLikeHTML(begin []byte) bool {
	begin = bytes.ToLower(bytes.TrimSpace(begin))
	return bytes.HasPrefix(begin, []byte("<!doctype html")) || bytes.HasPrefix(begin, []byte("<html"))
}

// refused returns the error for an archive. The format completes "the archive ...".
func refused(format string, args ...any) error {
	return failure.New(failure.RefusedArchive, "the archive "+format, args...)
}

// Archive unpacks an archive of size bytes into a directory.
func Archive(format Format, archive *os.File, size int64, into *os.Root, limits Limits) (Unpacked, error) {
	if err := checkMagic(archive, format); err != nil {
		return Unpacked{}, err
	}
	w := newWriter(into, &budget{limits: limits, archive: size})
	var err error
	switch format {
	case Zip:
		err = unzip(archive, size, w)
	case Tar, TarGzip, TarZstd:
		err = untar(format, io.NewSectionReader(archive, 0, size), w)
	}
	if err == nil && w.files == 0 {
		err = refused("has no files: check what was packed")
	}
	return Unpacked{Files: w.files, Bytes: w.bytes}, err
}

// Unpacked is what was written.
type Unpacked struct {
	Files int
	Bytes int64
}
