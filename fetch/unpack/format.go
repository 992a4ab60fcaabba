// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package unpack writes the files of an archive into a directory. It refuses what could leave the directory or exceed the
// bounds, and it decodes nothing else than the archive.
package unpack

import (
	"io"
	"os"
	"path"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
)

// Format is how an archive is written.
type Format string

// The formats. Plain is a file that is not unpacked, whatever it has inside. Gzip, Zstd and Bzip2 are one file each.
const (
	Plain    Format = ""
	Zip      Format = "zip"
	Tar      Format = "tar"
	TarGzip  Format = "tar.gz"
	TarZstd  Format = "tar.zst"
	TarBzip2 Format = "tar.bz2"
	Gzip     Format = "gz"
	Zstd     Format = "zst"
	Bzip2    Format = "bz2"
)

// endings are how the names of each format's files end, the longer ones first.
var endings = []struct {
	name   string
	format Format
}{
	{".tar.gz", TarGzip}, {".tgz", TarGzip}, {".tar.zst", TarZstd}, {".tar.bz2", TarBzip2}, {".tbz2", TarBzip2}, {".tbz", TarBzip2},
	{".zip", Zip}, {".tar", Tar}, {".gz", Gzip}, {".zst", Zstd}, {".bz2", Bzip2},
}

// FormatOf returns the format that a file's name says, in lower or upper case. Formats of models that are archives inside, such as .pt, are
// plain.
func FormatOf(name string) Format {
	for _, ending := range endings {
		if len(name) > len(ending.name) && strings.HasSuffix(strings.ToLower(name), ending.name) {
			return ending.format
		}
	}
	return Plain
}

// compression is what a format is compressed by: gz, zst, bz2, zip itself, or nothing.
func (f Format) compression() string {
	return strings.TrimPrefix(strings.TrimPrefix(string(f), string(Tar)), ".")
}

// magic is what a file of a compression begins with. A tar has its magic number (or, as the oldest had, none) within its
// first header, whose checksum the reader verifies.
var magic = map[string]string{"zip": "PK\x03\x04", "gz": "\x1f\x8b\x08", "zst": "\x28\xb5\x2f\xfd", "bz2": "BZh"}

// checkMagic compares an archive's first bytes with its format.
func checkMagic(archive io.ReaderAt, format Format) error {
	want := magic[format.compression()]
	begin := make([]byte, len(want))
	if _, err := archive.ReadAt(begin, 0); err != nil && err != io.EOF {
		return err
	}
	if string(begin) != want {
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
	if format == Zip {
		err = unzip(archive, size, w)
	} else {
		err = decompress(format, io.NewSectionReader(archive, 0, size), w, strings.TrimSuffix(name, path.Ext(name)))
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
