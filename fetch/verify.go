// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/place"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
	"github.com/modelbox-operator/modelbox-operator/fetch/source"
)

// proved verifies a complete model that another source has filled, or an earlier release, by what this source lists.
func (f *fetcher) proved(ctx context.Context, volume *place.Volume) (place.Record, error) {
	f.Log.Line("the model is there already, but not known to be of this source: verifying its files")
	list, err := source.Resolve(ctx, f.Settings, f.Downloader)
	if err != nil {
		return place.Record{}, err
	}
	directory, err := volume.Model()
	if err != nil {
		return place.Record{}, err
	}
	defer directory.Close() //nolint:errcheck // It was only read.
	f.Counter.Begin("verifying", total(list))
	fetched, err := verify(ctx, directory, list.Files, f.Counter)
	if err != nil {
		return place.Record{}, failure.New(failure.Refused, "the volume has another model in the directory %s than %s has (%w): remove that directory, or use another claim",
			f.Directory, f.Identity(), err)
	}
	f.Counter.Begin("", 0)
	record := f.record(list, fetched)
	record.Sources = append(volume.Recorded().Sources, record.Sources...)
	volume.Record(record)
	return record, nil
}

// verify reads the files of a directory. It is an error if they are not those of a list, or are not proved to be.
func verify(ctx context.Context, directory *os.Root, files []source.File, counter *report.Counter) (fetched []download.Fetched, err error) {
	for _, file := range files {
		one, err := verifyFile(ctx, directory, file, counter)
		if err != nil {
			return nil, fmt.Errorf("%s differs", file.Name)
		}
		fetched = append(fetched, one)
	}
	return fetched, others(directory, files, func(name string) error {
		return fmt.Errorf("%s is not among its files", name)
	})
}

func verifyFile(ctx context.Context, directory *os.Root, file source.File, counter *report.Counter) (download.Fetched, error) {
	on, err := directory.OpenFile(file.Name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // A FIFO without a writer ends at once.
	if err != nil {
		return download.Fetched{}, err
	}
	defer on.Close() //nolint:errcheck // It was only read.
	info, err := on.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() != file.Size {
		return download.Fetched{}, errors.Join(err, errors.New("it has another size, or is no file"))
	}
	item, err := file.Item(ctx, true)
	if err != nil {
		return download.Fetched{}, err
	}
	return download.Verify(item, on, counter)
}

// others calls one for what is in a directory and neither a file of a list nor a directory.
func others(directory *os.Root, files []source.File, one func(name string) error) error {
	names := map[string]bool{}
	for _, file := range files {
		names[file.Name] = true
	}
	return fs.WalkDir(directory.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && !names[name] || names[name] && entry.Type().IsRegular() {
			return err
		}
		if err := one(name); err != nil || !entry.IsDir() {
			return err
		}
		return fs.SkipDir
	})
}
