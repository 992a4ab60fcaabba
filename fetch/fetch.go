// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/place"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
	"github.com/modelbox-operator/modelbox-operator/fetch/source"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

// fetch leaves each complete model in its place on its volume, one after another.
func fetch(ctx context.Context, f flags, getenv func(string) string, log *report.Log, options guard.Options) ([]modeluri.Fetched, error) {
	counter := &report.Counter{}
	defer report.Progress(log, counter, f.progressEvery)()
	f.downloader.Log, f.downloader.Counter = log, counter
	var fetchers []*fetcher
	var works []string
	for _, m := range f.models {
		settings := source.Settings{Argument: m, Getenv: environment(m.EnvPrefix, getenv), Mirrors: f.Mirrors, MaxFiles: f.MaxFiles, Hide: log.Hide}
		// In the directory of this name, a start continues what an earlier one fetched of the same model.
		name := place.WorkName(m.Directory, m.URI+"\x00"+settings.Identity())
		one := &fetcher{Settings: settings, Downloader: f.downloader, maxRatio: f.maxRatio, name: name}
		fetchers, works = append(fetchers, one), append(works, one.name)
	}
	var done []modeluri.Fetched
	for _, one := range fetchers {
		record, err := one.through(ctx, options, works)
		if err != nil {
			return nil, named(one.Name, err)
		}
		done = append(done, modeluri.Fetched{Name: one.Name, Digest: record.Digest, Bytes: record.Bytes})
	}
	return done, nil
}

// through fetches a model by the proxy of its own Secret, or that of the container.
func (f *fetcher) through(ctx context.Context, options guard.Options, works []string) (_ place.Record, err error) {
	if options.Proxy == nil {
		if options.Proxy, err = guard.Proxy(f.Getenv); err != nil {
			return place.Record{}, err
		}
	}
	client := guard.New(f.Mirrors, options)
	defer client.Close()
	f.Client = client
	return f.fetch(ctx, works)
}

// named says which of several models failed.
func named(name string, err error) error {
	if name == "" {
		return err
	}
	f := failure.Of(err)
	return failure.New(f.Word, "model %s: %s", name, strings.TrimPrefix(f.Error(), "["+string(f.Word)+"] "))
}
