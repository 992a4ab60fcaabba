// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/source"
)

// stays is an error if a file is no longer what was hashed, after which it was as before says.
func stays(name string, before, now fs.FileInfo, err error) error {
	if err != nil || !os.SameFile(before, now) || now.Size() != before.Size() || !now.ModTime().Equal(before.ModTime()) {
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
	for i, before := range f.hashed {
		now, err := directory.Lstat(list.Files[i].Name)
		if err := stays(list.Files[i].Name, before, now, err); err != nil {
			return err
		}
	}
	return nil
}
