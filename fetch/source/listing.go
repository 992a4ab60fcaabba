// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"path"
	"slices"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/place"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
	"github.com/modelbox-operator/modelbox-operator/kinds/modeluri"
)

const (
	// maxListed is how many entries a list may have for each file that a model may have.
	maxListed = 10
	// maxNames bounds the names of the files in bytes, because all of them are held: 80 for each of 100,000 files.
	maxNames = 8 << 20
	// fewer is the way out where a model has too much.
	fewer = "name a folder of it in the URI, or select files by --include and --exclude"
)

// listing collects the files of a list that a server sends, within the bounds of what is held: those that a pattern of include matches, or
// all without any, and none of exclude.
type listing struct {
	settings         Settings
	include, exclude []*selector
	files            []File
	// pages and entries are how many came, and names is how many bytes the names of the files have.
	pages, entries, names int
}

type selector struct {
	modeluri.Pattern
	flag    string
	matched bool
}

func (s Settings) listing() (*listing, error) {
	include, err := selectors("--include", s.Include)
	if err != nil {
		return nil, err
	}
	exclude, err := selectors("--exclude", s.Exclude)
	return &listing{settings: s, include: include, exclude: exclude}, err
}

func selectors(flag string, patterns []string) (out []*selector, err error) {
	for _, text := range patterns {
		pattern, err := modeluri.ParsePattern(text)
		if err != nil {
			return nil, failure.New(failure.Invalid, "%s %s %w", flag, failure.Quote(text), err)
		}
		out = append(out, &selector{Pattern: pattern, flag: flag})
	}
	return out, nil
}

// anyMatches asks all of them, because each has to match a file.
func anyMatches(selectors []*selector, name string) bool {
	found := false
	for _, each := range selectors {
		if each.Match(name) {
			each.matched, found = true, true
		}
	}
	return found
}

// page counts a page of the list.
func (l *listing) page() error {
	if l.pages++; l.pages > l.settings.MaxFiles+maxListed {
		return failure.New(failure.Refused, "the model has a list without an end: check spec.model.uri")
	}
	return nil
}

// entry counts an entry of the list.
func (l *listing) entry() error {
	if l.entries++; l.entries/maxListed >= l.settings.MaxFiles {
		return failure.New(failure.TooBig, "the list has more than %d entries: check HF_ENDPOINT and the mirrors", l.settings.MaxFiles*maxListed)
	}
	return nil
}

// add adds a file if it is selected.
func (l *listing) add(name string, item func() (download.Item, error)) error {
	included, excluded := anyMatches(l.include, name), anyMatches(l.exclude, name)
	if excluded || !included && len(l.include) > 0 {
		return nil
	}
	clean, err := modeluri.Clean(name)
	if err != nil || clean != name || clean == "." {
		return failure.New(failure.Refused, "the list has a file that cannot be stored: %s: leave it out by --exclude, or check HF_ENDPOINT and the mirrors", failure.Quote(name))
	}
	l.names += len(name)
	switch {
	case len(l.files) == l.settings.MaxFiles:
		return failure.New(failure.TooBig, "the model has more than %d files: %s", l.settings.MaxFiles, fewer)
	case l.names > maxNames:
		return failure.New(failure.TooBig, "the names of the model's files have more than %s: %s", report.Bytes(maxNames), fewer)
	}
	file := File{Name: name}
	if file.Item, err = item(); err == nil {
		l.files = append(l.files, file)
	}
	return err
}

// model returns the files of a list that has come to its end, after it has checked what they and their directories need of the volume,
// and that each name stands for one of them. A pattern that no file matched is misspelt, or the model has changed.
func (l *listing) model() (Model, error) {
	for _, each := range slices.Concat(l.include, l.exclude) {
		if !each.matched {
			return Model{}, failure.New(failure.NotFound, "%s %s matches no file of the model: correct it, or remove it", each.flag, failure.Quote(each.String()))
		}
	}
	slices.SortFunc(l.files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	directories, need := map[string]bool{".": true}, int64(place.Own)
	for _, file := range l.files {
		for name := path.Dir(file.Name); !directories[name]; name = path.Dir(name) {
			directories[name] = true
			need += place.Block
		}
		if need += place.InBlocks(min(file.Size, 1<<62)); need > l.settings.SizeLimit {
			return Model{}, failure.New(failure.TooBig, "the model has more than the %s of spec.model.sizeLimit, with its directories, and in blocks of 4 KiB: raise it, %s",
				report.Bytes(l.settings.SizeLimit), fewer)
		}
		if len(directories) > l.settings.MaxFiles+1 {
			return Model{}, failure.New(failure.TooBig, "the model has more than %d directories: %s", l.settings.MaxFiles, fewer)
		}
	}
	for i, file := range l.files {
		if directories[file.Name] || i > 0 && file.Name == l.files[i-1].Name {
			return Model{}, failure.New(failure.Refused, "the model has %s twice, as a file or as a directory: leave one out by --exclude, or check HF_ENDPOINT and the mirrors",
				failure.Quote(file.Name))
		}
	}
	return Model{Files: l.files}, nil
}
