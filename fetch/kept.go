// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/place"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
	"github.com/modelbox-operator/modelbox-operator/fetch/source"
)

// journal says which parts of the files in a work directory are there, for a later start. Its methods may be called concurrently.
type journal struct {
	work *place.Work
	log  *report.Log

	mutex sync.Mutex
	files map[string]*download.Kept
	// verified is true once a file is complete that a hash has verified.
	verified bool
}

// newJournal continues the journal of a work directory.
func newJournal(work *place.Work, log *report.Log) *journal {
	j := &journal{work: work, log: log}
	if err := json.Unmarshal(work.State(), &j.files); err != nil || j.files == nil {
		j.files = map[string]*download.Kept{}
	}
	return j
}

// kept returns what an earlier start has left of a file. One that is not in the journal may be complete: its hash decides.
func (j *journal) kept(name string, file *os.File, size int64) *download.Kept {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if kept := j.files[name]; kept != nil {
		return kept
	}
	info, err := file.Stat()
	if err != nil || size >= 0 && size != info.Size() {
		return nil
	}
	return &download.Kept{Size: info.Size()}
}

// save saves what there is of a file; nil is nothing.
func (j *journal) save(name string, kept *download.Kept) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if _, was := j.files[name]; kept == nil && !was {
		return
	}
	j.files[name] = kept
	if kept == nil {
		delete(j.files, name)
	}
	content, err := json.Marshal(j.files)
	if err == nil {
		err = j.work.SaveState(content)
	}
	if err != nil {
		j.log.Line("the state of the fetch cannot be saved: %v", err)
	}
}

// done ends a file that is complete.
func (j *journal) done(name string, verified bool) {
	j.save(name, nil)
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.verified = j.verified || verified
}

// isOfUse is true if a later start can continue after an error.
func (j *journal) isOfUse(err error) bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if err == nil || len(j.files) == 0 && !j.verified && !j.work.Continued {
		return false
	}
	switch failure.Of(err).Word {
	case failure.Unreachable, failure.Interrupted, failure.Failed, failure.NotFound, failure.Denied:
		return true
	}
	return false
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

// verify reads the files of a directory. It is an error if they are not those of a list, or are not proved to be.
func verify(directory *os.Root, files []source.File, counter *report.Counter) (fetched []download.Fetched, err error) {
	for _, file := range files {
		one, err := verifyFile(directory, file, counter)
		if err != nil {
			return nil, fmt.Errorf("%s differs", failure.Quote(file.Name))
		}
		fetched = append(fetched, one)
	}
	return fetched, others(directory, files, func(name string) error {
		return fmt.Errorf("%s is not among its files", failure.Quote(name))
	})
}

func verifyFile(directory *os.Root, file source.File, counter *report.Counter) (download.Fetched, error) {
	on, err := directory.OpenFile(file.Name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // A FIFO without a writer ends at once.
	if err != nil {
		return download.Fetched{}, err
	}
	defer on.Close() //nolint:errcheck // It was only read.
	info, err := on.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() != file.Size {
		return download.Fetched{}, errors.Join(err, errors.New("it has another size, or is no file"))
	}
	return download.Verify(file.Item, on, counter)
}
