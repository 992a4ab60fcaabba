// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"path"
	"slices"
	"strings"

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
	settings  Settings
	selectors []*selector
	files     []File
	// pages and entries are how many came, and names is how many bytes the names of the files have.
	pages, entries, names int
}

type selector struct {
	modeluri.Pattern
	flag             string
	exclude, matched bool
}

func (s Settings) listing() (*listing, error) {
	list := &listing{settings: s}
	for i, text := range slices.Concat(s.Include, s.Exclude) {
		each := &selector{flag: "--include", exclude: i >= len(s.Include)}
		if each.exclude {
			each.flag = "--exclude"
		}
		var err error
		if each.Pattern, err = modeluri.ParsePattern(text); err != nil {
			return nil, failure.New(failure.Invalid, "%s %s %w", each.flag, failure.Quote(text), err)
		}
		list.selectors = append(list.selectors, each)
	}
	return list, nil
}

// collect returns the files of a list, of which next adds a page, and says whether there are more. empty is the error without any file.
func (s Settings) collect(empty string, next func(*listing) (bool, error)) (Model, error) {
	list, err := s.listing()
	for more := true; err == nil && more; {
		if list.pages++; list.pages > s.MaxFiles+maxListed {
			return Model{}, failure.New(failure.Refused, "the model has a list without an end: check spec.model.uri")
		}
		more, err = next(list)
	}
	if err != nil {
		return Model{}, err
	}
	return list.model(empty)
}

// selects is true for the name of a file to fetch. It asks all patterns, because each has to match a file.
func (l *listing) selects(name string) bool {
	included, excluded := len(l.settings.Include) == 0, false
	for _, each := range l.selectors {
		if each.Match(name) {
			each.matched, included, excluded = true, included || !each.exclude, excluded || each.exclude
		}
	}
	return included && !excluded
}

// entry counts an entry of the list.
func (l *listing) entry() error {
	if l.entries++; l.entries/maxListed >= l.settings.MaxFiles {
		return failure.New(failure.TooBig, "the list has more than %d entries: check HF_ENDPOINT and the mirrors", l.settings.MaxFiles*maxListed)
	}
	return nil
}

// add adds a file that is selected.
func (l *listing) add(file File) error {
	if clean, err := modeluri.Clean(file.Name); err != nil || clean != file.Name || clean == "." {
		return failure.New(failure.Refused, "the list has a file that cannot be stored: %s: leave it out by --exclude, or check HF_ENDPOINT and the mirrors", failure.Quote(file.Name))
	}
	l.names += len(file.Name)
	switch {
	case len(l.files) == l.settings.MaxFiles:
		return failure.New(failure.TooBig, "the model has more than %d files: %s", l.settings.MaxFiles, fewer)
	case l.names > maxNames:
		return failure.New(failure.TooBig, "the names of the model's files have more than %s: %s", report.Bytes(maxNames), fewer)
	}
	l.files = append(l.files, file)
	return nil
}

// model returns the files of a list that has come to its end, after it has checked what they and their directories need of the volume,
// and that each name stands for one of them. A pattern that no file matched is misspelt, or the model has changed.
func (l *listing) model(empty string) (Model, error) {
	for _, each := range l.selectors {
		if !each.matched {
			return Model{}, failure.New(failure.NotFound, "%s %s matches no file of the model: correct it, or remove it", each.flag, failure.Quote(each.String()))
		}
	}
	if len(l.files) == 0 {
		return Model{}, failure.New(failure.NotFound, "%s", empty)
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
