// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/place"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
	"github.com/modelbox-operator/modelbox-operator/fetch/source"
	"github.com/modelbox-operator/modelbox-operator/fetch/unpack"
	"github.com/modelbox-operator/modelbox-operator/kinds/modeluri"
)

// fetch leaves each complete model in its place on its volume, one after another.
func fetch(ctx context.Context, f flags, getenv func(string) string, log *report.Log, options guard.Options) ([]modeluri.Fetched, error) {
	client, counter := guard.New(f.mirrors, options), &report.Counter{}
	defer client.Close()
	defer report.Progress(log, counter, f.progressEvery)()
	downloader := &download.Downloader{
		Client: client, ConnectFor: f.connectFor, RetryFor: f.retryFor, Connections: f.connections, Log: log, Counter: counter,
	}
	var works []string
	for _, m := range f.all() {
		_, name := workOf(f.settings(m, getenv, log))
		works = append(works, name)
	}
	var done []modeluri.Fetched
	for _, m := range f.all() {
		one := &fetcher{flags: f, Settings: f.settings(m, getenv, log), works: works, downloader: downloader, log: log, counter: counter}
		record, err := one.fetch(ctx)
		if err != nil {
			return nil, named(m.Name, err)
		}
		done = append(done, modeluri.Fetched{Name: m.Name, Digest: record.Digest, Bytes: record.Bytes})
	}
	return done, nil
}

// fetcher fetches one model.
type fetcher struct {
	source.Settings
	flags flags
	// works are the names of the work directories of all models.
	works      []string
	downloader *download.Downloader
	log        *report.Log
	counter    *report.Counter
}

// fetch leaves the complete model in its place, and returns what is recorded of it.
func (f *fetcher) fetch(ctx context.Context) (place.Record, error) {
	volume, err := place.Open(f.Volume, f.Directory, f.log)
	if err != nil {
		return place.Record{}, err
	}
	defer volume.Close() //nolint:errcheck // Nothing was written through it that is not synced.
	if done, err := f.prepared(volume); done || err != nil {
		return volume.Recorded(), err
	}
	if f.Shared {
		release, err := volume.Lock()
		if err != nil {
			return place.Record{}, err
		}
		defer release()
		if done, err := f.prepared(volume); done || err != nil {
			return volume.Recorded(), err
		}
		if there, err := volume.Complete(); there || err != nil {
			return f.proved(ctx, volume, err)
		}
	}
	return f.into(ctx, volume)
}

// prepared removes what earlier starts left, and is true if the model is in its place. In a volume that is shared, the name of the
// directory or the record must say that it is this model.
func (f *fetcher) prepared(volume *place.Volume) (bool, error) {
	done, err := volume.Complete()
	_, own := workOf(f.Settings)
	works := slices.DeleteFunc(slices.Clone(f.works), func(name string) bool { return done && name == own })
	if err := volume.RemoveLeftovers(f.Shared, works...); err != nil {
		return false, err
	}
	if f.Shared && f.SHA256 == "" && !slices.Contains(volume.Recorded().Sources, f.Identity()) {
		done = false
	}
	if done {
		f.log.Line("the model is there already")
	}
	return done, err
}

// proved verifies a complete model that another source has filled, or an earlier release, by what this source lists.
func (f *fetcher) proved(ctx context.Context, volume *place.Volume, err error) (place.Record, error) {
	if err != nil {
		return place.Record{}, err
	}
	f.log.Line("the model is there already, but not known to be of this source: verifying its files")
	list, err := source.Resolve(ctx, f.Settings, f.downloader)
	if err != nil {
		return place.Record{}, err
	}
	directory, err := volume.Model()
	if err != nil {
		return place.Record{}, err
	}
	defer directory.Close() //nolint:errcheck // It was only read.
	f.counter.Begin("verifying", total(list))
	fetched, err := verify(directory, list.Files, f.counter)
	if err != nil {
		return place.Record{}, failure.New(failure.Refused, "the volume has another model in the directory %s than %s has (%w): remove that directory, or use another claim",
			f.Directory, failure.Quote(f.Identity()), err)
	}
	f.counter.Begin("", 0)
	record := f.record(list, fetched)
	record.Sources = append(volume.Recorded().Sources, record.Sources...)
	volume.Record(record)
	return record, nil
}

// record returns what is known of a model whose files were fetched. Its digest is that of the one file, or of what sha256sum prints for
// all of them, sorted by name.
func (f *fetcher) record(list source.Model, fetched []download.Fetched) place.Record {
	record, sum := place.Record{}, sha256.New()
	if identity := f.Identity(); identity != "" {
		record.Sources = []string{identity}
	}
	for i, each := range fetched {
		record.Bytes += each.Bytes
		fmt.Fprintf(sum, "%s  %s\n", each.SHA256, list.Files[i].Name)
	}
	if record.Digest = "sha256:" + hex.EncodeToString(sum.Sum(nil)); list.Archives {
		record.Digest = "sha256:" + fetched[0].SHA256
	}
	return record
}

// into fetches the model into a work directory, and publishes it.
func (f *fetcher) into(ctx context.Context, volume *place.Volume) (record place.Record, err error) {
	key, _ := workOf(f.Settings)
	work, err := volume.Begin(key)
	if err != nil {
		return record, err
	}
	journal := newJournal(work, f.log)
	defer func() { work.End(journal.isOfUse(err)) }()
	list, err := source.Resolve(ctx, f.Settings, f.downloader)
	if err != nil {
		return record, err
	}
	fetched, err := f.files(ctx, work, journal, list)
	if err != nil {
		return record, err
	}
	f.log.Line("flushing to the volume")
	f.counter.Begin("", 0)
	record = f.record(list, fetched)
	if err = work.Publish(record); err != nil {
		return record, err
	}
	f.log.Line("the model is complete")
	return record, nil
}

// files fetches the files of a list into the work directory.
func (f *fetcher) files(ctx context.Context, work *place.Work, journal *journal, list source.Model) ([]download.Fetched, error) {
	if first := list.Files[0]; list.Archives && unpack.FormatOf(first.Name) != "" {
		fetched, err := f.archive(ctx, work, journal, first)
		return []download.Fetched{fetched}, err
	}
	directory, err := work.Model(false)
	if err != nil {
		return nil, err
	}
	defer directory.Close() //nolint:errcheck // It has no data of its own.
	// What an earlier start left.
	if err := others(directory, list.Files, directory.RemoveAll); err != nil {
		return nil, err
	}
	f.counter.Begin("progress", total(list))
	fetched := make([]download.Fetched, len(list.Files))
	return fetched, download.Each(ctx, f.flags.connections, len(list.Files), func(ctx context.Context, i int) (err error) {
		fetched[i], err = f.plain(ctx, directory, journal, list.Files[i])
		return err
	})
}

// left returns how many bytes sizeLimit leaves for one file, in whole blocks.
func (f *fetcher) left() int64 {
	return max(f.SizeLimit-place.Own, 0) / place.Block * place.Block
}

// total returns how many bytes a model has; 0 is unknown.
func total(list source.Model) (bytes int64) {
	for _, file := range list.Files {
		bytes += max(file.Size, 0)
	}
	return bytes
}

// plain fetches a file of the model to its place in the directory.
func (f *fetcher) plain(ctx context.Context, directory *os.Root, journal *journal, file source.File) (download.Fetched, error) {
	if err := directory.MkdirAll(path.Dir(file.Name), 0o755); err != nil {
		return download.Fetched{}, err
	}
	to, err := directory.OpenFile(file.Name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return download.Fetched{}, err
	}
	limit := f.left()
	if file.Size >= 0 {
		limit = file.Size // It counts in the list.
	}
	fetched, err := f.download(ctx, journal, file, to, limit)
	return fetched, errors.Join(err, to.Close())
}

// download fetches and verifies a file.
func (f *fetcher) download(ctx context.Context, journal *journal, file source.File, to *os.File, limit int64) (download.Fetched, error) {
	f.log.Line("fetching %s", guard.Show(file.URL))
	begin := time.Now()
	file.Kept, file.Save = journal.kept(file.Name, to, file.Size), func(kept *download.Kept) { journal.save(file.Name, kept) }
	fetched, err := f.downloader.File(ctx, file.Item, to, limit)
	if err != nil {
		return fetched, err
	}
	journal.done(file.Name, file.Hash.Want != "")
	verified := "verified"
	if file.Hash.Want == "" {
		verified = "not verified: set spec.model.sha256"
	}
	f.log.Line("fetched %s of %s in %s; its hash is %s (%s)",
		report.Bytes(fetched.Bytes), guard.Show(file.URL), time.Since(begin).Round(time.Millisecond), fetched.Sum, verified)
	return fetched, nil
}

// archive fetches an archive, and unpacks it within what its own size leaves of the limit.
func (f *fetcher) archive(ctx context.Context, work *place.Work, journal *journal, file source.File) (download.Fetched, error) {
	to, err := work.Download()
	if err != nil {
		return download.Fetched{}, err
	}
	defer to.Close() //nolint:errcheck // It is removed.
	directory, err := work.Model(true)
	if err != nil {
		return download.Fetched{}, err
	}
	defer directory.Close() //nolint:errcheck // It has no data of its own.
	f.counter.Begin("progress", 0)
	fetched, err := f.download(ctx, journal, file, to, f.left())
	if err != nil {
		return fetched, err
	}
	f.log.Line("unpacking %s", unpack.FormatOf(file.Name))
	f.counter.Begin("unpacking", 0)
	unpacked, err := unpack.Archive(file.Name, to, fetched.Bytes, directory, unpack.Limits{
		MaxFiles: f.flags.maxFiles, MaxBytes: f.left() - place.InBlocks(fetched.Bytes), MaxRatio: f.flags.maxRatio, Counter: f.counter,
	})
	if err != nil {
		return fetched, err
	}
	f.log.Line("unpacked %d files with %s", unpacked.Files, report.Bytes(unpacked.Bytes))
	return fetched, work.RemoveDownload()
}
