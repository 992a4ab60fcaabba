// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"os"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/source"
)

// continueFrom reads what an earlier start has saved.
func (f *fetcher) continueFrom() {
	token := f.Getenv("HF_TOKEN") != ""
	if f.work.State(&f.state) != nil || f.state.Kept == nil {
		f.state = state{Kept: map[string]*download.Kept{}}
	}
	if f.state.Token == token {
		f.Hold(f.state.Held)
	}
	f.state.Token = token
}

// left returns what an earlier start has left of a file. One that it has not saved may be complete: its hash decides.
func (f *fetcher) left(file source.File, on *os.File) *download.Kept {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if kept := f.state.Kept[file.Name]; kept != nil {
		return kept
	}
	info, err := on.Stat()
	if err != nil || info.Size() == 0 || file.Size >= 0 && file.Size != info.Size() {
		return nil
	}
	return &download.Kept{Size: info.Size()}
}

// save saves what there is of a file; nil is nothing.
func (f *fetcher) save(name string, kept *download.Kept) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if _, was := f.state.Kept[name]; kept == nil && !was {
		return
	}
	f.state.Kept[name] = kept
	if kept == nil {
		delete(f.state.Kept, name)
	}
	f.saveState()
}

func (f *fetcher) saveState() {
	f.state.Held = f.Held()
	if err := f.work.SaveState(f.state); err != nil {
		f.Log.Line("the state of the fetch cannot be saved: %v", err)
	}
}

// isOfUse is true if a later start can continue after an error, whatever it was. Only an archive
// that is refused stays refused, and what another process was quicker with is there.
func (f *fetcher) isOfUse(err error) bool {
	final := errors.Is(err, fs.ErrExist) || failure.Of(err).Word == failure.RefusedArchive
	limited := failure.Of(err).Word == failure.RateLimited
	return err != nil && !final && (limited || len(f.state.Kept) > 0 || f.verified.Load() || f.work.Continued)
}
