// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"errors"
	"os"
	"syscall"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
)

const lockPrefix = ".lock-"

// Lock waits until no other process fetches the same model into the volume, and returns what releases the lock. The
// kernel releases it as well when the process ends, however it ends.
func (v *Volume) Lock() (func(), error) {
	name := lockPrefix + v.name
	lock, err := v.lockFile(name)
	if err != nil {
		return nil, err
	}
	if err = flock(lock, syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		v.log.Line("another pod fetches this model into the volume: waiting")
		err = flock(lock, syscall.LOCK_EX)
	}
	if info, statErr := lock.Stat(); err == nil && !v.has(name, info, statErr) { // It was removed meanwhile, and the next process locks another file.
		_ = lock.Close()
		return v.Lock()
	}
	if unsupported(err) {
		err = failure.New(failure.Invalid, "the volume has no file locks (%w), which several pods that share it need: use a volume with locks, such as NFS 4 or CephFS, or a volume for each pod", err)
	}
	return func() { _ = lock.Close() }, err
}

// lockFile opens the file that is locked while a model is fetched into a volume that is shared; closing it releases the lock. The file is
// writable for the pods of every user, and for NFS, which locks only what is open for writing. Whatever other pods put at its place, it is a
// file of this volume.
func (v *Volume) lockFile(name string) (*os.File, error) {
	if there, err := v.root.Lstat(name); err == nil && !there.Mode().IsRegular() {
		return nil, failure.New(failure.Invalid, "the volume has something else than a file at %s: remove it", name)
	}
	file, err := v.root.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o666)
	if err == nil {
		_ = file.Chmod(0o666) // It fails for all but the owner, who has done it.
	}
	return file, err
}

// flock locks a file. With LOCK_NB, it is syscall.EWOULDBLOCK if another process has locked it.
func flock(file *os.File, how int) error {
	for {
		if err := syscall.Flock(int(file.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func unsupported(err error) bool {
	return errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.ENOLCK)
}
