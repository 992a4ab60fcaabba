// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// workName is the name of a work directory, with that of the model's directory. In a volume that is
// shared, it ends with what is of one process.
var workName = regexp.MustCompile(`^\.fetch-(.+)-[0-9a-f]{16}(?:\.[A-Z2-7]{26})?$`)

// othersFor is how long the work of other models stays in a volume that several pods share: longer
// than the kubelet waits before it starts their container again.
const othersFor = time.Hour

// RemoveLeftovers removes the work directories of processes that have ended, except those with the names to keep and, in a volume that is
// shared, those that other pods may soon continue. It leaves those that it may not remove.
func (v *Volume) RemoveLeftovers(shared bool, keep ...string) error {
	entries, err := fs.ReadDir(v.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		model := workName.FindStringSubmatch(entry.Name())
		if !entry.IsDir() || model == nil || slices.ContainsFunc(keep, func(name string) bool { return isWork(entry.Name(), name) }) {
			continue
		}
		if err := v.removeLeftover(entry, model[1], shared); err != nil {
			v.log.Line("work in progress of an earlier start cannot be removed: %v", err)
		}
	}
	return nil
}

// removeLeftover removes a work directory. In a volume that is shared, it leaves one in which a state was saved not long ago, or whose model
// another pod has locked.
func (v *Volume) removeLeftover(entry fs.DirEntry, model string, shared bool) error {
	if shared {
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) < othersFor {
			return nil
		}
		lock, err := v.lockFile(lockPrefix + model)
		if err != nil {
			return err
		}
		defer lock.Close() //nolint:errcheck // The kernel releases it in any case.
		if err := flock(lock, syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
			return nil
		} else if err != nil {
			return err
		}
	}
	v.log.Line("removing work in progress of an earlier start: %s", entry.Name())
	name := entry.Name()[:strings.LastIndexByte(entry.Name(), '-')+17] + "." + rand.Text() // No process publishes it from now on.
	return errors.Join(v.root.Rename(entry.Name(), name), v.root.RemoveAll(name))
}
