// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"syscall"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/source"
)

// stamp changes when a file is written to, or replaced.
type stamp struct {
	inode        uint64
	size, change int64
}

func stampOf(info fs.FileInfo, err error) (stamp, error) {
	if err != nil {
		return stamp{}, err
	}
	return stamp{info.Sys().(*syscall.Stat_t).Ino, info.Size(), info.ModTime().UnixNano()}, nil
}

// check is an error if a file is no longer what was hashed.
func (s stamp) check(name string, info fs.FileInfo, err error) error {
	if now, err := stampOf(info, err); err != nil || now != s {
		return failure.New(failure.Failed, "%s was changed in the volume after its hash was verified: find out what else writes there; the next start verifies it again", name)
	}
	return nil
}

// unchanged checks all files.
func (f *fetcher) unchanged(list source.Model) error {
	directory, err := f.work.Model(false)
	if err != nil {
		return err
	}
	defer directory.Close() //nolint:errcheck // It was only read.
	for i, before := range f.stamps {
		info, err := directory.Lstat(list.Files[i].Name)
		if err := before.check(list.Files[i].Name, info, err); err != nil {
			return err
		}
	}
	return nil
}
