// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/place"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
	"github.com/modelbox-operator/modelbox-operator/fetch/source"
	"github.com/modelbox-operator/modelbox-operator/fetch/unpack"
)

// files fetches the files of a list into the work directory.
func (f *fetcher) files(ctx context.Context, list source.Model) ([]download.Fetched, error) {
	if first := list.Files[0]; list.Archives && unpack.FormatOf(first.Name) != "" {
		fetched, err := f.archive(ctx, first)
		return []download.Fetched{fetched}, err
	}
	directory, err := f.work.Model(false)
	if err != nil {
		return nil, err
	}
	defer directory.Close() //nolint:errcheck // It has no data of its own.
	// What an earlier start left.
	if err := others(directory, list.Files, directory.RemoveAll); err != nil {
		return nil, err
	}
	for _, name := range list.Directories {
		if err := directory.MkdirAll(name, 0o775); err != nil {
			return nil, err
		}
	}
	if err := f.fits(directory, list); err != nil {
		return nil, err
	}
	f.Counter.Begin("progress", total(list))
	fetched := make([]download.Fetched, len(list.Files))
	f.hashed = make([]fs.FileInfo, len(list.Files))
	return fetched, f.Each(ctx, len(list.Files), func(ctx context.Context, i int) (err error) {
		fetched[i], f.hashed[i], err = f.plain(ctx, directory, list.Files[i])
		return err
	})
}

// fits is an error if the volume has no room for the files of a list, or would make one of two of
// them.
func (f *fetcher) fits(directory *os.Root, list source.Model) error {
	need, names := total(list), map[string]string{}
	for _, file := range list.Files {
		if info, err := directory.Lstat(file.Name); err == nil {
			need -= min(info.Sys().(*syscall.Stat_t).Blocks*512, info.Size())
		}
		folded := strings.ToLower(file.Name)
		if names[folded] != "" && f.work.IgnoresCase() {
			return failure.New(failure.Refused, "the volume ignores the case of names, and the model has %s and %s: leave one out by spec.model.exclude, or use another volume",
				names[folded], file.Name)
		}
		names[folded] = file.Name
	}
	if free := f.work.Free(); need > free {
		return failure.New(failure.NoSpace, "the volume has %s of free space, and the model needs %s more: use a larger volume or node disk, or remove old models", report.Bytes(free), report.Bytes(need))
	}
	return nil
}

// total returns how many bytes a model has; 0 is unknown.
func total(list source.Model) (bytes int64) {
	for _, file := range list.Files {
		bytes += max(file.Size, 0)
	}
	return bytes
}

// plain fetches a file of the model to its place in the directory.
func (f *fetcher) plain(ctx context.Context, directory *os.Root, file source.File) (fetched download.Fetched, is fs.FileInfo, err error) {
	if err := directory.MkdirAll(path.Dir(file.Name), 0o775); err != nil {
		return fetched, is, err
	}
	to, err := directory.OpenFile(file.Name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fetched, is, err
	}
	limit := f.room()
	if file.Size >= 0 {
		limit = file.Size // It counts in the list.
	}
	fetched, says, err := f.download(ctx, file, to, limit)
	if err = errors.Join(err, to.Close()); err != nil {
		return fetched, is, err
	}
	is, err = directory.Lstat(file.Name) // Only now no write changes it, also on NFS.
	f.Log.Line("%s", says)
	return fetched, is, err
}

// room returns how many bytes sizeLimit leaves for one file, in whole blocks.
func (f *fetcher) room() int64 {
	return max(f.SizeLimit-place.Own, 0) / place.Block * place.Block
}

// download fetches and verifies a file. It returns what the log says of it.
func (f *fetcher) download(ctx context.Context, file source.File, to *os.File, limit int64) (_ download.Fetched, says string, _ error) {
	kept := f.left(file, to)
	item, err := file.Item(ctx, kept != nil)
	if err != nil {
		return download.Fetched{}, "", err
	}
	f.Log.Line("fetching %s", guard.Show(item.URL))
	begin := time.Now()
	item.Kept, item.Save = kept, func(kept *download.Kept) { f.save(file.Name, kept) }
	fetched, err := f.File(ctx, item, to, limit)
	if err != nil {
		if failure.Of(err).Word == failure.WrongHash { // Nothing of it is of use.
			f.save(file.Name, nil)
			err = errors.Join(err, to.Truncate(0))
		}
		return fetched, "", err
	}
	f.save(file.Name, nil)
	verified := "not verified: set spec.model.sha256"
	if item.Size >= 0 {
		verified = "not verified: the bucket has no checksum of the whole object"
	}
	if fetched.Verified {
		verified = "verified"
		f.verified.Store(true)
	}
	return fetched, fmt.Sprintf("fetched %s of %s in %s; its hash is %s (%s)",
		report.Bytes(fetched.Bytes), guard.Show(item.URL), time.Since(begin).Round(time.Millisecond), fetched.Sum, verified), nil
}
