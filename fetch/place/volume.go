// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package place keeps a volume such that a model's directory is either absent or complete: work is done beside it, made
// durable, and renamed.
package place

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"syscall"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
)

const (
	// Block is the unit that the volume, and the kubelet's measure of it, count files and directories in: most file systems have 4 KiB.
	Block = 4096
	// Own is what the fetcher itself needs of the volume beside the model: its directories, lock, state and record.
	Own = 8 * Block
)

// InBlocks returns how many bytes of the volume a file of a size takes.
func InBlocks(size int64) int64 { return (size + Block - 1) / Block * Block }

// lockPrefix begins the name of the file that is locked while a model is fetched into a volume that is shared.
const lockPrefix = ".lock-"

// directoryName is what the directory of a model may be called. It does not begin with a dot, as the names of this package do.
var directoryName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$`)

// Volume is the directory of a volume, and the name that the model gets in it.
type Volume struct {
	name string
	root *os.Root
	log  *report.Log
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
	return &Volume{name: name, root: root, log: log}, nil
}

// Close closes the volume.
func (v *Volume) Close() error { return v.root.Close() }

// lostAndFound is what mkfs makes in a new file system.
const lostAndFound = "lost+found"

// Complete is true if the model is there. An empty directory is none: the kubelet makes one where a container mounts a subPath
// before the model is there. Neither is a new file system.
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
	names, err := directory.Readdirnames(2)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return len(names) > 1 || len(names) == 1 && names[0] != lostAndFound, err
}

// Lock waits until no other process fetches the same model into the volume, and returns what releases the lock. The
// kernel releases it as well when the process ends, however it ends.
func (v *Volume) Lock() (func(), error) {
	lock, locked, err := v.tryLock(lockPrefix + v.name)
	if err == nil && !locked {
		v.log.Line("another pod fetches this model into the volume: waiting")
		_, err = flock(lock, syscall.LOCK_EX)
	}
	if unsupported(err) {
		err = failure.New(failure.Invalid, "the volume has no file locks (%w), which several pods that share it need: use a volume with locks, such as NFS 4 or CephFS, or a volume for each pod", err)
	}
	return func() { _ = lock.Close() }, err
}

// tryLock opens a file of the volume, and tries once to lock it; closing it releases the lock. The file is writable for the pods of every
// user, and for NFS, which locks only what is open for writing. Whatever other pods put at its place, it is a file of this volume.
func (v *Volume) tryLock(name string) (*os.File, bool, error) {
	if there, err := v.root.Lstat(name); err == nil && !there.Mode().IsRegular() {
		return nil, false, failure.New(failure.Invalid, "the volume has something else than a file at %s: remove it", name)
	}
	file, err := v.root.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, false, err
	}
	_ = file.Chmod(0o666) // It fails for all but the owner, who has done it.
	locked, err := flock(file, syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		_ = file.Close()
		return nil, false, err
	}
	return file, locked, nil
}

// flock locks a file, and is false if another process has locked it and the call is not to wait for that.
func flock(file *os.File, how int) (bool, error) {
	for {
		switch err := syscall.Flock(int(file.Fd()), how); {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		default:
			return err == nil, err
		}
	}
}

func unsupported(err error) bool {
	return errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.ENOLCK)
}

const (
	recordPrefix = ".model-"
	// maxRecord bounds a record in bytes, and maxSources the sources in it.
	maxRecord  = 64 << 10
	maxSources = 16
)

// Record is what is known of a complete model. It is beside the model's directory, in a file of the volume.
type Record struct {
	// Sources say what the bytes were fetched from, or verified against.
	Sources []string `json:"sources,omitempty"`
	// Digest and Bytes are what the termination message says of it.
	Digest string `json:"digest,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
}

// Has is true if the model is known to be what a source has.
func (r Record) Has(source string) bool { return slices.Contains(r.Sources, source) }

func (v *Volume) recordName() string { return recordPrefix + v.name }

// Recorded returns the record of the model; the zero Record is none, such as of a model that an earlier release has fetched.
func (v *Volume) Recorded() (record Record) {
	if err := json.Unmarshal(readFile(v.root, v.recordName(), maxRecord), &record); err != nil {
		return Record{}
	}
	return record
}

// readFile returns the content of a file of at most size bytes; nil is none. Whatever other pods put there, it neither waits nor grows.
func readFile(root *os.Root, name string, size int64) []byte {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // A FIFO without a writer ends at once.
	if err != nil {
		return nil
	}
	defer file.Close() //nolint:errcheck // It was only read.
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > size {
		return nil
	}
	content, err := io.ReadAll(io.LimitReader(file, size))
	if err != nil {
		return nil
	}
	return content
}

// Record writes the record of the model. Without it, a later start has to verify the files again.
func (v *Volume) Record(record Record) {
	record.Sources = record.Sources[max(0, len(record.Sources)-maxSources):]
	content, err := json.Marshal(record)
	if err == nil {
		err = replaceFile(v.root, v.recordName(), content)
	}
	if err != nil {
		v.log.Line("what the model is cannot be recorded: %v", err)
	}
}

// Model opens the directory of the complete model.
func (v *Volume) Model() (*os.Root, error) { return v.root.OpenRoot(v.name) }
