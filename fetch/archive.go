// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"os"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/place"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
	"github.com/modelbox-operator/modelbox-operator/fetch/source"
	"github.com/modelbox-operator/modelbox-operator/fetch/unpack"
)

// archive fetches an archive, and unpacks it within what its own size leaves of the limit.
func (f *fetcher) archive(ctx context.Context, file source.File) (download.Fetched, error) {
	f.Counter.Begin("progress", 0)
	stored := file
	stored.Name = place.Archive
	fetched, verified, err := f.plain(ctx, f.work.Root, stored)
	if err != nil {
		return fetched, err
	}
	archive, err := f.work.Open(place.Archive)
	if err != nil {
		return fetched, err
	}
	defer archive.Close() //nolint:errcheck // It was only read.
	refused := f.unpack(file.Name, archive, fetched.Bytes)
	info, err := archive.Stat()
	if err := cmp.Or(stays(place.Archive, verified, info, err), refused); err != nil {
		return fetched, err
	}
	return fetched, f.work.Remove(place.Archive) // Before all is flushed to the volume: this is not.
}

// unpack writes the files of an archive into the model's directory.
func (f *fetcher) unpack(name string, archive *os.File, size int64) error {
	directory, err := f.work.Model(true)
	if err != nil {
		return err
	}
	defer directory.Close() //nolint:errcheck // It has no data of its own.
	f.Log.Line("unpacking %s", unpack.FormatOf(name))
	f.Counter.Begin("unpacking", 0)
	unpacked, err := unpack.Archive(name, archive, size, directory, unpack.Limits{
		MaxFiles: f.MaxFiles, MaxBytes: f.room() - place.InBlocks(size), MaxRatio: f.maxRatio, Counter: f.Counter,
	})
	if err == nil {
		f.Log.Line("unpacked %d files with %s", unpacked.Files, report.Bytes(unpacked.Bytes))
	}
	return err
}
