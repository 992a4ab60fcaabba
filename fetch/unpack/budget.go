// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"cmp"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/place"
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

// budget is what an archive has used of its limits.
type budget struct {
	limits Limits
	// archive is the archive's size in bytes.
	archive int64
	// entries and directories, bytes on the volume, and bytes that came out of the decompressor, so far.
	entries, directories int
	volume, decompressed int64
}

// entry counts one entry of the archive.
func (b *budget) entry() error {
	b.entries++
	return b.checkCount(b.entries)
}

// directory counts one directory that was made.
func (b *budget) directory() error {
	b.directories++
	if err := b.checkCount(b.directories); err != nil {
		return err
	}
	return b.reserve(place.Block)
}

func (b *budget) checkCount(count int) error {
	if count > b.limits.MaxFiles {
		return failure.New(failure.TooBig, "the archive has more than %d files or directories: pack fewer", b.limits.MaxFiles)
	}
	return nil
}

// file counts a file of a size on the volume, before anything of it is written.
func (b *budget) file(size int64) error {
	if size < 0 {
		return refused("has a file of a negative size: pack it anew")
	}
	if size > b.limits.MaxBytes {
		return b.full()
	}
	return b.reserve(place.InBlocks(size))
}

func (b *budget) reserve(bytes int64) error {
	if bytes > b.limits.MaxBytes-b.volume {
		return b.full()
	}
	b.volume += bytes
	return nil
}

func (b *budget) full() error {
	return failure.New(failure.TooBig,
		"the archive (%s) and its files, which are on the volume together, need more than spec.model.sizeLimit: raise it", report.Bytes(b.archive))
}

// decompress counts bytes that came out of the decompressor, written or not.
func (b *budget) decompress(bytes int64) error {
	b.decompressed += bytes
	if b.decompressed > cmp.Or(b.limits.RatioFrom, defaultRatioFrom) && b.decompressed/b.limits.MaxRatio > b.archive {
		return failure.New(failure.TooBig, "the archive becomes more than %d times as large: pack it without such compression", b.limits.MaxRatio)
	}
	return nil
}
