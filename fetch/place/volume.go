// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package place keeps a volume such that a model's directory is either absent or complete: work is done beside it, made
// durable, and renamed.
package place

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
)

// poll is how often a lock that another process holds is tried.
const poll = 500 * time.Millisecond

// directoryName is what the directory of a model may be called. It does not begin with a dot, as the names of this package do.
var directoryName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$`)

// Volume is the directory of a volume, and the name that the model gets in it.
type Volume struct {
	path, name string
	root       *os.Root
	log        *report.Log
}

// Open opens a volume.
func Open(path, name string, log *report.Log) (*Volume, error) {
	if !directoryName.MatchString(name) {
		return nil, failure.New(failure.Invalid, "--directory %s is no name of a directory: use letters, digits, dots, underscores and dashes", failure.Quote(name))
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, failure.New(failure.Invalid, "--volume cannot be opened: %w: mount the volume there", err)
	}
	return &Volume{path: path, name: name, root: root, log: log}, nil
}

// Close closes the volume.
func (v *Volume) Close() error { return v.root.Close() }

// Complete is true if the model is there. An empty directory is none: the kubelet makes one where a container mounts a subPath
// before the model is there.
func (v *Volume) Complete() (bool, error) {
	info, err := v.root.Lstat(v.name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !info.IsDir() {
		return false, failure.New(failure.Invalid, "the volume has something else than a directory at %s: remove it, or use another volume", v.name)
	}
	directory, err := v.root.Open(v.name)
	if err != nil {
		return false, err
	}
	defer directory.Close() //nolint:errcheck // It was only read.
	_, err = directory.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil, err
}

// Lock waits until no other process fetches the same model into the volume, and returns what releases the lock. The
// kernel releases it as well when the process ends, however it ends. A line says at each interval that it waits.
func (v *Volume) Lock(ctx context.Context, every time.Duration) (func(), error) {
	lock, err := v.tryLock(".lock-" + v.name)
	polled, logged := time.NewTicker(poll), time.NewTicker(every)
	defer polled.Stop()
	defer logged.Stop()
	for waited := false; err == nil && !lock.Locked(); {
		if !waited {
			v.log.Line("another pod fetches this model into the volume: waiting")
			waited = true
		}
		select {
		case <-polled.C:
			_, err = lock.TryLock()
		case <-logged.C:
			v.log.Line("still waiting for the pod that fetches this model into the volume")
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		return nil, lockError(err)
	}
	return func() { _ = lock.Close() }, nil
}

// tryLock tries once to lock a file of the volume. The file is writable for the pods of every user, and for NFS, which locks only
// what is open for writing.
func (v *Volume) tryLock(name string) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(v.path, name), flock.SetFlag(os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW), flock.SetPermissions(0o666))
	if _, err := lock.TryLock(); err != nil {
		_ = lock.Close()
		return nil, err
	}
	_ = v.root.Chmod(name, 0o666) // It fails for all but the owner, who has done it.
	return lock, nil
}

func lockError(err error) error {
	if unsupported(err) {
		return failure.New(failure.Invalid, "the volume has no file locks (%w), which several pods that share it need: use a volume with locks, such as NFS 4 or CephFS, or a volume for each pod", err)
	}
	return err
}

func unsupported(err error) bool {
	return errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.ENOLCK)
}
