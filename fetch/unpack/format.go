// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"io"
	"strings"
)

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
