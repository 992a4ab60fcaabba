// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// workPrefix begins the name of a directory in which a process writes a model. The directory has the archive while it is
	// downloaded, the model, and the state that a later process continues from.
	workPrefix   = ".fetch-"
	downloadName = "download"
	modelName    = "model"
	stateName    = "state"
	// othersFor is how long the work of other models stays in a volume that several pods share: longer than the kubelet waits before it
	// starts their container again.
	othersFor = time.Hour
)

// workName is the name of a work directory, with that of the model's directory.
var workName = regexp.MustCompile(`^\.fetch-(.+)-[0-9a-f]{16}$`)

// Work is a directory with work in progress. In a volume that is shared, the lock of the model is held meanwhile.
type Work struct {
	// Continued is true if an earlier process has begun it.
	Continued bool

	volume *Volume
	name   string
	root   *os.Root
}

// WorkName returns the name of the work directory for what a key stands for in a model's directory. A later start with the same
// key, as the same user, continues there.
func WorkName(directory, key string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s", os.Getuid(), key))
	return workPrefix + directory + "-" + hex.EncodeToString(sum[:8])
}

// Begin makes or takes over the work directory of a key.
func (v *Volume) Begin(key string) (*Work, error) {
	name := WorkName(v.name, key)
	there, err := v.root.Lstat(name)
	if err == nil && !there.IsDir() {
		err = v.root.Remove(name)
	}
	if err := ignoreNotExist(err); err != nil {
		return nil, err
	}
	if err := v.root.MkdirAll(filepath.Join(name, modelName), 0o755); err != nil {
		return nil, err
	}
	root, err := v.root.OpenRoot(name)
	return &Work{Continued: there != nil && there.IsDir(), volume: v, name: name, root: root}, err
}

// Download opens the file that an archive is fetched into, with what an earlier start left in it. It is readable and writable.
func (w *Work) Download() (*os.File, error) {
	return w.root.OpenFile(downloadName, os.O_RDWR|os.O_CREATE, 0o600)
}

// RemoveDownload removes the file of Download.
func (w *Work) RemoveDownload() error { return w.root.Remove(downloadName) }

// Model opens the directory that Publish renames, with what an earlier start left in it, or without.
func (w *Work) Model(empty bool) (*os.Root, error) {
	if empty {
		if err := errors.Join(w.root.RemoveAll(modelName), w.root.Mkdir(modelName, 0o755)); err != nil {
			return nil, err
		}
	}
	return w.root.OpenRoot(modelName)
}

// maxState bounds the state in bytes: that of 8 files with 1000 parts each.
const maxState = 1 << 20

// State returns what SaveState wrote last, in this process or an earlier one; nil is nothing.
func (w *Work) State() []byte { return readFile(w.root, stateName, maxState) }

// SaveState replaces the state at once.
func (w *Work) SaveState(state []byte) error {
	return replaceFile(w.root, stateName, state)
}

// replaceFile makes a file have a content: the old or the new one, whenever the process ends.
func replaceFile(root *os.Root, name string, content []byte) error {
	next := name + ".next"
	if err := ignoreNotExist(root.Remove(next)); err != nil {
		return err
	}
	if err := root.WriteFile(next, content, 0o644); err != nil {
		return err
	}
	return root.Rename(next, name)
}

// Publish makes the model durable, renames it to its place, and records what it is.
func (w *Work) Publish(record Record) error {
	if err := syncAll(w.root); err != nil {
		return err
	}
	// What is recorded is of another model, which was removed.
	if err := ignoreNotExist(w.volume.root.Remove(w.volume.recordName())); err != nil {
		return err
	}
	// A directory without a model may be there; Complete says why.
	_ = w.volume.root.Remove(filepath.Join(w.volume.name, lostAndFound))
	if err := ignoreNotExist(w.volume.root.Remove(w.volume.name)); err != nil {
		return err
	}
	if err := w.volume.root.Rename(filepath.Join(w.name, modelName), w.volume.name); err != nil {
		return err
	}
	w.volume.Record(record)
	return syncDirectory(w.volume.root)
}

// End removes the work directory unless it is kept for the next start. What it cannot remove, the next start removes.
func (w *Work) End(keep bool) {
	err := w.root.Close()
	if !keep {
		err = errors.Join(err, w.volume.root.RemoveAll(w.name))
	}
	if err != nil {
		w.volume.log.Line("work in progress cannot be removed: %v", err)
	}
}

// syncAll writes everything to the disk, by one call for the file system: that costs the same for a thousand files as for one. A sandbox
// without the call has that for all file systems.
func syncAll(root *os.Root) error {
	directory, err := root.Open(".")
	if err != nil {
		return err
	}
	defer directory.Close() //nolint:errcheck // It was only read.
	err = unix.Syncfs(int(directory.Fd()))
	if unsupported(err) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EPERM) {
		unix.Sync()
		return nil
	}
	return err
}

// syncDirectory writes the names in a directory to the disk.
func syncDirectory(root *os.Root) error {
	directory, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

// RemoveLeftovers removes the work directories of processes that have ended, except those with the names to keep and, in a volume that is
// shared, those that other pods may soon continue. It leaves those that it may not remove.
func (v *Volume) RemoveLeftovers(shared bool, keep ...string) error {
	entries, err := fs.ReadDir(v.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		model := workName.FindStringSubmatch(entry.Name())
		if !entry.IsDir() || model == nil || slices.Contains(keep, entry.Name()) || shared && isRecent(entry) {
			continue
		}
		if err := v.removeLeftover(entry.Name(), lockPrefix+model[1], shared); err != nil {
			v.log.Line("work in progress of an earlier start cannot be removed: %v", err)
		}
	}
	return nil
}

// isRecent is true if a process has saved its state in a work directory not long ago.
func isRecent(entry fs.DirEntry) bool {
	info, err := entry.Info()
	return err == nil && time.Since(info.ModTime()) < othersFor
}

// removeLeftover removes a work directory unless another pod holds the lock of its model.
func (v *Volume) removeLeftover(name, lock string, shared bool) error {
	if shared {
		file, locked, err := v.tryLock(lock)
		if err != nil {
			return err
		}
		defer file.Close() //nolint:errcheck // The kernel releases it in any case.
		if !locked {
			return nil
		}
	}
	v.log.Line("removing work in progress of an earlier start: %s", name)
	return v.root.RemoveAll(name)
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
