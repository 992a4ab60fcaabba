// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"path"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/place"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
	"github.com/modelbox-operator/modelbox-operator/fetch/source"
	"github.com/modelbox-operator/modelbox-operator/fetch/unpack"
)

// fetch leaves the complete model in its place on the volume.
func fetch(ctx context.Context, f flags, getenv func(string) string, log *report.Log, options guard.Options) error {
	volume, err := place.Open(f.volume, f.directory, log)
	if err != nil {
		return err
	}
	defer volume.Close() //nolint:errcheck // Nothing was written through it that is not synced.
	if done, err := prepared(volume, log); done || err != nil {
		return err
	}
	if f.shared {
		release, err := volume.Lock(ctx, f.progressEvery)
		if err != nil {
			return err
		}
		defer release()
		if done, err := prepared(volume, log); done || err != nil {
			return err
		}
	}
	work, err := volume.Begin()
	if err != nil {
		return err
	}
	defer work.End()
	return newFetcher(f, getenv, log, options).into(ctx, work)
}

// prepared removes what earlier starts left, and is true if the model is in its place.
func prepared(volume *place.Volume, log *report.Log) (bool, error) {
	if err := volume.RemoveLeftovers(); err != nil {
		return false, err
	}
	done, err := volume.Complete()
	if done {
		log.Line("the model is there already")
	}
	return done, err
}

// fetcher is one run of the program.
type fetcher struct {
	flags      flags
	settings   source.Settings
	client     *guard.Client
	downloader *download.Downloader
	log        *report.Log
	counter    *report.Counter
}

func newFetcher(f flags, getenv func(string) string, log *report.Log, options guard.Options) *fetcher {
	client, counter := guard.New(f.mirrors, options), &report.Counter{}
	return &fetcher{
		flags: f, client: client, log: log, counter: counter,
		downloader: &download.Downloader{Client: client, ConnectFor: f.connectFor, RetryFor: f.retryFor, Log: log, Counter: counter},
		settings:   source.Settings{URI: f.uri, SHA256: f.sha256, Getenv: getenv, Mirrors: f.mirrors, MaxFiles: f.maxFiles, MaxBytes: f.sizeLimit},
	}
}

// into fetches the model into the work directory, and publishes it.
func (f *fetcher) into(ctx context.Context, work *place.Work) error {
	defer f.client.Close()
	defer report.Progress(f.log, f.counter, f.flags.progressEvery)()
	model, err := source.Resolve(ctx, f.settings, f.downloader)
	if err != nil {
		return err
	}
	if err := f.files(ctx, work, model); err != nil {
		return err
	}
	f.log.Line("flushing to the volume")
	f.counter.Begin("", 0)
	if err := work.Publish(); err != nil {
		return err
	}
	f.log.Line("the model is complete")
	return nil
}

func (f *fetcher) files(ctx context.Context, work *place.Work, model source.Model) error {
	directory, err := work.Model()
	if err != nil {
		return err
	}
	defer directory.Close() //nolint:errcheck // It has no data of its own.
	first := model.Files[0]
	if format := unpack.FormatOf(first.Name); model.Archives && format != unpack.Plain {
		return f.archive(ctx, work, first, format, directory)
	}
	f.counter.Begin("progress", total(model))
	left := f.flags.sizeLimit
	for _, file := range model.Files {
		fetched, err := f.plain(ctx, directory, file, left)
		if err != nil {
			return err
		}
		left -= inBlocks(fetched)
	}
	return nil
}

// block is the unit that the volume, and the kubelet's measure of it, count files in.
const block = 4096

// inBlocks returns how many bytes of the volume a file of a size takes.
func inBlocks(bytes int64) int64 { return (bytes + block - 1) / block * block }

// total returns how many bytes a model has; 0 is unknown.
func total(model source.Model) (bytes int64) {
	for _, file := range model.Files {
		bytes += max(file.Size, 0)
	}
	return bytes
}

// plain fetches a file of the model to its place in the directory.
func (f *fetcher) plain(ctx context.Context, directory *os.Root, file source.File, limit int64) (int64, error) {
	if err := directory.MkdirAll(path.Dir(file.Name), 0o755); err != nil {
		return 0, err
	}
	to, err := directory.OpenFile(file.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return 0, failure.New(failure.Refused, "the model has two files of one name: %s: check HF_ENDPOINT and the mirrors", failure.Quote(file.Name))
	}
	if err != nil {
		return 0, err
	}
	fetched, err := f.download(ctx, file, to, limit)
	return fetched.Bytes, errors.Join(err, to.Close())
}

// download fetches and verifies a file.
func (f *fetcher) download(ctx context.Context, file source.File, to *os.File, limit int64) (download.Fetched, error) {
	f.log.Line("fetching %s", guard.Show(file.URL))
	begin := time.Now()
	fetched, err := f.downloader.File(ctx, file.Item, to, limit)
	if err != nil {
		return fetched, err
	}
	verified := "verified"
	if file.Hash.Want == "" {
		verified = "not verified: set spec.model.sha256"
	}
	f.log.Line("fetched %s in %s; its hash is %s (%s)", report.Bytes(fetched.Bytes), time.Since(begin).Round(time.Millisecond), fetched.Sum, verified)
	return fetched, nil
}

// archive fetches an archive, and unpacks it within what its own size leaves of the limit.
func (f *fetcher) archive(ctx context.Context, work *place.Work, file source.File, format unpack.Format, directory *os.Root) error {
	to, err := work.Download()
	if err != nil {
		return err
	}
	defer to.Close() //nolint:errcheck // It is removed.
	f.counter.Begin("progress", 0)
	fetched, err := f.download(ctx, file, to, f.flags.sizeLimit)
	if err != nil {
		return err
	}
	f.log.Line("unpacking %s", format)
	f.counter.Begin("unpacking", 0)
	unpacked, err := unpack.Archive(format, to, fetched.Bytes, directory, unpack.Limits{
		MaxFiles: f.flags.maxFiles, MaxBytes: f.flags.sizeLimit - fetched.Bytes, MaxRatio: f.flags.maxRatio, Counter: f.counter,
	})
	if err != nil {
		return err
	}
	f.log.Line("unpacked %d files with %s", unpacked.Files, report.Bytes(unpacked.Bytes))
	return work.RemoveDownload()
}
