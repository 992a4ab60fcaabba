// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
)

// Sync makes the model durable.
func (w *Work) Sync() error { return opened(w.Root, syncAll) }

// syncAll writes everything to the disk, by one call for the file system: that costs the same for a thousand files as for one. A sandbox
// without the call has that for all file systems.
func syncAll(directory *os.File) error {
	err := unix.Syncfs(int(directory.Fd()))
	if unsupported(err) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EPERM) {
		unix.Sync()
		return nil
	}
	return err
}

// Publish renames the model to its place, and records what it is. It is fs.ErrExist if another
// process has done so.
func (w *Work) Publish(record Record) error {
	if info, err := w.Stat("."); !w.volume.has(w.name, info, err) {
		return failure.New(failure.Failed, "another process has taken over the work in progress, although the volume is locked: the next start continues; use a volume whose locks other nodes see")
	}
	// A directory without a model may be there; Complete says why.
	_ = w.volume.root.Remove(filepath.Join(w.volume.name, lostAndFound))
	if err := w.volume.root.Remove(w.volume.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// While there is no model, nothing reads the record: so it is there as soon as the model is.
	if err := w.record(record); err != nil {
		return err
	}
	if err := w.volume.root.Rename(filepath.Join(w.name, modelName), w.volume.name); err != nil {
		return errors.Join(err, w.volume.root.RemoveAll(w.volume.recordName()))
	}
	w.published = true
	return opened(w.volume.root, (*os.File).Sync)
}

// record replaces the record of the model. It is written in the work directory, where no other process writes.
func (w *Work) record(record Record) error {
	at := w.volume.recordName()
	if err := errors.Join(save(w.Root, recordName, record), w.volume.root.RemoveAll(at)); err != nil {
		return err
	}
	return w.volume.root.Rename(filepath.Join(w.name, recordName), at)
}

// End removes the work directory unless it is kept for the next start, which can continue what was
// not published. What it cannot remove, the next start removes.
func (w *Work) End(keep bool) {
	err := w.Close()
	defer w.owner.Close() //nolint:errcheck // It only has a lock.
	if !keep || w.published {
		err = errors.Join(err, w.volume.root.RemoveAll(w.name))
	}
	if err != nil {
		w.volume.log.Line("work in progress cannot be removed: %v", err)
	}
}
