// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/gofrs/flock"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
)

const (
	// workPrefix begins the name of a directory in which a process writes a model. The directory has the lock of that
	// process, the archive while it is downloaded, and the model.
	workPrefix = ".fetch-"
	// endedPrefix begins the name of a work directory that is being removed.
	endedPrefix  = ".ended-"
	lockName     = "lock"
	downloadName = "download"
	modelName    = "model"
	// attempts is how often a work directory is made that another process takes for a leftover.
	attempts = 100
)

var (
	workName  = regexp.MustCompile(`^\.fetch-[0-9a-f]{16}$`)
	endedName = regexp.MustCompile(`^\.ended-[0-9a-f]{16}$`)
)

// Work is a directory with work in progress.
type Work struct {
	volume *Volume
	name   string
	root   *os.Root
	lock   *flock.Flock
}

// Begin makes a work directory, locked for as long as this process lives.
func (v *Volume) Begin() (*Work, error) {
	for range attempts {
		work, err := v.tryBegin()
		if err != nil || work != nil {
			return work, err
		}
	}
	return nil, failure.New(failure.Failed, "other pods remove the work directories on the volume as fast as they are made: use a volume for each pod")
}

// tryBegin returns nil if another process removed the directory as a leftover before it was locked.
func (v *Volume) tryBegin() (*Work, error) {
	name := workPrefix + random()
	if err := v.root.Mkdir(name, 0o755); err != nil {
		return nil, err
	}
	lock, err := v.tryLock(filepath.Join(name, lockName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case unsupported(err):
		lock = nil // Only pods that share the volume need it, and Lock says so.
	case err != nil:
		return nil, err
	case !lock.Locked() || !v.holds(name, lock):
		_ = lock.Close()
		return nil, nil
	}
	if err := v.root.Mkdir(filepath.Join(name, modelName), 0o755); err != nil {
		return nil, err
	}
	root, err := v.root.OpenRoot(name)
	return &Work{volume: v, name: name, root: root, lock: lock}, err
}

// holds is true if the lock's file is still the one in the directory.
func (v *Volume) holds(name string, lock *flock.Flock) bool {
	locked, err := lock.Stat()
	if err != nil {
		return false
	}
	there, err := v.root.Lstat(filepath.Join(name, lockName))
	return err == nil && os.SameFile(locked, there)
}

func random() string {
	bytes := make([]byte, 8)
	_, _ = rand.Read(bytes) // It never fails.
	return hex.EncodeToString(bytes)
}

// Download makes the file that an archive is fetched into. It is readable and writable.
func (w *Work) Download() (*os.File, error) {
	return w.root.OpenFile(downloadName, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
}

// RemoveDownload removes the file of Download.
func (w *Work) RemoveDownload() error { return w.root.Remove(downloadName) }

// Model opens the directory that Publish renames.
func (w *Work) Model() (*os.Root, error) { return w.root.OpenRoot(modelName) }

// Publish makes the model durable and renames it to its place.
func (w *Work) Publish() error {
	if err := syncTree(w.root, modelName); err != nil {
		return err
	}
	// An empty directory may be there, which the kubelet has made; Complete says why.
	if err := ignoreNotExist(w.volume.root.Remove(w.volume.name)); err != nil {
		return err
	}
	if err := w.volume.root.Rename(filepath.Join(w.name, modelName), w.volume.name); err != nil {
		return err
	}
	return syncFile(w.volume.root, ".")
}

// End removes the work directory, and then releases its lock. What it cannot remove, the next start removes.
func (w *Work) End() {
	err := errors.Join(w.root.Close(), w.volume.root.RemoveAll(w.name))
	if w.lock != nil {
		err = errors.Join(err, w.lock.Close())
	}
	if err != nil {
		w.volume.log.Line("work in progress cannot be removed: %v", err)
	}
}

// syncTree writes each file and directory below a name to the disk: the files before the directories that name them.
func syncTree(root *os.Root, name string) error {
	var directories []string
	err := fs.WalkDir(root.FS(), name, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			directories = append(directories, path)
			return nil
		}
		return syncFile(root, path)
	})
	for i := len(directories) - 1; err == nil && i >= 0; i-- {
		err = syncFile(root, directories[i])
	}
	return err
}

func syncFile(root *os.Root, name string) error {
	file, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// RemoveLeftovers removes the work directories of processes that have ended. It leaves those that it may not remove.
func (v *Volume) RemoveLeftovers() error {
	entries, err := fs.ReadDir(v.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		var err error
		switch name := entry.Name(); {
		case workName.MatchString(name):
			err = v.removeLeftover(name)
		case endedName.MatchString(name):
			err = v.root.RemoveAll(name)
		}
		if err != nil {
			v.log.Line("work in progress of an earlier start cannot be removed: %v", err)
		}
	}
	return nil
}

// removeLeftover removes a work directory unless another process holds its lock. It takes the lock, and renames the directory
// before it removes anything, so that a process that has just made it notices: tryBegin looks for its lock afterwards.
func (v *Volume) removeLeftover(name string) error {
	lock, err := v.tryLock(filepath.Join(name, lockName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil && !unsupported(err):
		return err
	case err == nil:
		defer lock.Close() //nolint:errcheck // The kernel releases it in any case.
		if !lock.Locked() {
			return nil
		}
	}
	ended := endedPrefix + strings.TrimPrefix(name, workPrefix)
	if err := v.root.Rename(name, ended); err != nil {
		return ignoreNotExist(err)
	}
	v.log.Line("removing work in progress of an earlier start: %s", name)
	return v.root.RemoveAll(ended)
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
