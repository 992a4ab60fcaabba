// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/place"
	"github.com/modelbox-operator/modelbox-operator/fetch/source"
)

// fetcher fetches one model.
type fetcher struct {
	source.Settings
	*download.Downloader
	maxRatio int64

	// work is the directory that the model is fetched into, and name its name.
	work *place.Work
	name string
	// state is what a later start continues from.
	mutex sync.Mutex
	state state
	// hashed are the files when their hashes were known.
	hashed []fs.FileInfo
	// verified is true once a file is complete that a hash has verified.
	verified atomic.Bool
}

// state is what is saved beside the work in progress.
type state struct {
	// Kept says which parts of the files are there.
	Kept map[string]*download.Kept `json:"kept"`
	// Held says until when servers want to be left alone, and Token whether they were sent a token:
	// with one, a hub answers more.
	Held  map[string]time.Time `json:"held,omitempty"`
	Token bool                 `json:"token,omitempty"`
}

// fetch leaves the complete model in its place, and returns what is recorded of it. works are the
// work directories of all models. Where another process was first, which no lock has kept away, its
// model is verified.
func (f *fetcher) fetch(ctx context.Context, works []string) (place.Record, error) {
	record, err := f.once(ctx, works)
	if errors.Is(err, fs.ErrExist) && f.Shared {
		return f.once(ctx, works)
	}
	return record, err
}

func (f *fetcher) once(ctx context.Context, works []string) (place.Record, error) {
	volume, err := place.Open(f.Volume, f.Directory, f.Log)
	if err != nil {
		return place.Record{}, err
	}
	defer volume.Close() //nolint:errcheck // Nothing was written through it that is not synced.
	there, done, err := f.prepare(volume, works)
	if f.Shared && !done && err == nil {
		release, locking := volume.Lock()
		if locking != nil {
			return place.Record{}, locking
		}
		defer release()
		there, done, err = f.prepare(volume, works)
	}
	switch {
	case err != nil || done:
		return volume.Recorded(), err
	case there:
		return f.proved(ctx, volume)
	}
	return f.into(ctx, volume)
}

// prepare removes what earlier starts left. It returns whether a model is in its place, and whether it is this one: in a volume that is
// shared, the name of the directory or the record must say so.
func (f *fetcher) prepare(volume *place.Volume, works []string) (there, done bool, err error) {
	if there, err = volume.Complete(); err != nil {
		return false, false, err
	}
	if there {
		works = slices.DeleteFunc(slices.Clone(works), func(name string) bool { return name == f.name })
	}
	if done = there && (!f.Shared || f.SHA256 != "" || slices.Contains(volume.Recorded().Sources, f.Identity())); done {
		f.Log.Line("the model is there already")
	}
	return there, done, volume.RemoveLeftovers(f.Shared, works...)
}

// into fetches the model into a work directory, and publishes it.
func (f *fetcher) into(ctx context.Context, volume *place.Volume) (record place.Record, err error) {
	if f.work, err = volume.Begin(f.name, f.Shared); err != nil {
		return record, err
	}
	f.continueFrom()
	defer func() {
		if failure.Of(err).Word == failure.RateLimited {
			f.saveState()
		}
		f.work.End(f.isOfUse(err))
	}()
	f.Log.Line("asking for the files of the model")
	f.Counter.Begin("list", 0)
	list, err := source.Resolve(ctx, f.Settings, f.Downloader)
	if err != nil {
		return record, err
	}
	fetched, err := f.files(ctx, list)
	if err != nil {
		return record, err
	}
	f.Log.Line("flushing to the volume")
	f.Counter.Begin("", 0)
	record = f.record(list, fetched)
	if err = f.work.Sync(); err == nil {
		err = f.unchanged(list)
	}
	if err == nil {
		err = f.work.Publish(record)
	}
	if err != nil {
		return record, err
	}
	f.Log.Line("the model is complete")
	return record, nil
}
