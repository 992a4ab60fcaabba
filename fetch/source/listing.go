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
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

const (
	// maxListed is how many entries a list may have for each file that a model may have.
	maxListed = 10
	// maxNames bounds the names of the files in bytes, because all of them are held: 80 for each of 100,000 files.
	maxNames = 8 << 20
	// fewer is the way out where a model has too much.
	fewer = "name a folder of it in the URI, or select files by spec.model.include and spec.model.exclude"
)

// listing collects the files of a list that a server sends and the patterns select, within the bounds of what is held.
type listing struct {
	settings  Settings
	selection modeluri.Selection
	files     []File
	empty     []string
	seen      bool // That there is a file, selected or not.
	// pages and entries are how many came, and names is how many bytes the names of the files have.
	pages, entries, names int
}

// collect returns the files of a list, of which next adds a page, and says whether there are more. empty returns the error without any file.
func (s Settings) collect(empty func() string, next func(*listing) (bool, error)) (Model, error) {
	selection, err := modeluri.ParseSelection(s.Include, s.Exclude)
	if err != nil {
		return Model{}, failure.New(failure.Invalid, "spec.model.%w", err)
	}
	list := &listing{settings: s, selection: selection}
	for more := true; more; {
		if list.pages++; list.pages > s.MaxFiles+maxListed {
			return Model{}, failure.New(failure.Refused, "the model has a list without an end: check spec.model.uri")
		}
		if more, err = next(list); err != nil {
			return Model{}, err
		}
	}
	return list.model(empty)
}

// entry counts an entry of the list.
func (l *listing) entry() error {
	if l.entries++; l.entries/maxListed >= l.settings.MaxFiles {
		return failure.New(failure.TooBig, "the list has more than %d entries: check %s", l.settings.MaxFiles*maxListed, l.settings.lister())
	}
	return nil
}

// selects reports whether a file is selected.
func (l *listing) selects(name string) bool {
	l.seen = true
	return l.selection.Selects(name)
}

// add adds a file that is selected.
func (l *listing) add(file File) error {
	if len(l.files) == l.settings.MaxFiles {
		return failure.New(failure.TooBig, "the model has more than %d files: %s", l.settings.MaxFiles, fewer)
	}
	l.files = append(l.files, file)
	return l.name(file.Name)
}

// directory adds a directory, which may be empty, if files in it are selected.
func (l *listing) directory(name string) error {
	if name == "" || !l.selection.Selects(name+"/") {
		return nil
	}
	if l.empty = append(l.empty, name); len(l.empty) > l.settings.MaxFiles {
		return failure.New(failure.TooBig, "the model has more than %d directories: %s", l.settings.MaxFiles, fewer)
	}
	return l.name(name)
}

// name checks the name of a file or a directory.
func (l *listing) name(name string) error {
	if clean, err := modeluri.Clean(name); err != nil || clean != name || clean == "." {
		return failure.New(failure.Refused, "the list has a file that cannot be stored: %s: leave it out by spec.model.exclude, or check %s", name, l.settings.lister())
	}
	if l.names += len(name); l.names > maxNames {
		return failure.New(failure.TooBig, "the names of the model's files have more than %s: %s", report.Bytes(maxNames), fewer)
	}
	return nil
}

// directories returns those of the files, and those that may be empty.
func (l *listing) directories() map[string]bool {
	all := map[string]bool{".": true}
	add := func(name string) {
		for ; !all[name]; name = path.Dir(name) {
			all[name] = true
		}
	}
	for _, name := range l.empty {
		add(name)
	}
	for _, file := range l.files {
		add(path.Dir(file.Name))
	}
	return all
}

// model returns the files of a list that has come to its end, after it has checked what they and their directories need of the volume,
// and that each name stands for one of them. A pattern that no file matched is misspelt, or the model has changed.
func (l *listing) model(empty func() string) (Model, error) {
	if !l.seen {
		return Model{}, failure.New(failure.NotFound, "%s", empty())
	}
	if field, pattern := l.selection.Unmatched(); pattern != "" {
		return Model{}, failure.New(failure.NotFound, "spec.model.%s: %s matches no file of the model: correct it, or remove it", field, pattern)
	}
	if len(l.files) == 0 {
		return Model{}, failure.New(failure.NotFound, "spec.model.exclude leaves out each file of the model: correct it")
	}
	slices.SortFunc(l.files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	directories := l.directories()
	need := int64(place.Own + place.Block*(len(directories)-1))
	for _, file := range l.files {
		if need += place.InBlocks(min(file.Size, 1<<62)); need > l.settings.SizeLimit {
			return Model{}, failure.New(failure.TooBig, "the model has more than the %s of spec.model.sizeLimit, with its directories, and in blocks of 4 KiB: raise it, %s",
				report.Bytes(l.settings.SizeLimit), fewer)
		}
	}
	if len(directories) > l.settings.MaxFiles+1 {
		return Model{}, failure.New(failure.TooBig, "the model has more than %d directories: %s", l.settings.MaxFiles, fewer)
	}
	for i, file := range l.files {
		if directories[file.Name] || i > 0 && file.Name == l.files[i-1].Name {
			return Model{}, failure.New(failure.Refused, "the model has %s twice, as a file or as a directory: leave one out by spec.model.exclude, or check %s",
				file.Name, l.settings.lister())
		}
	}
	return Model{Files: l.files, Directories: l.empty}, nil
}

// lister is what decides which server a list is from.
func (s Settings) lister() string {
	if strings.HasPrefix(strings.ToLower(s.URI), "s3://") {
		return "AWS_ENDPOINT_URL"
	}
	return "HF_ENDPOINT and the mirrors"
}
