// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package place keeps a volume such that a model's directory is either absent or complete: work is done beside it, made
// durable, and renamed.
package place

import (
	"errors"
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
		return nil, failure.New(failure.Invalid, "--directory %s is no name of a directory: use letters, digits, dots, underscores and dashes", name)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, failure.New(failure.Invalid, "--volume cannot be opened: %w: mount the volume there", err)
	}
	if info, err := root.Stat("."); err == nil { // Who may remove directories of the volume, by fsGroup, may remove old models.
		syscall.Umask(0o022 &^ int(info.Mode()&0o020))
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
	entries, err := fs.ReadDir(v.root.FS(), v.name)
	return slices.ContainsFunc(entries, func(entry fs.DirEntry) bool { return entry.Name() != lostAndFound }), err
}

// Model opens the directory of the complete model.
func (v *Volume) Model() (*os.Root, error) { return v.root.OpenRoot(v.name) }

// has is true if a name still stands for a file or directory that was opened.
func (v *Volume) has(name string, opened fs.FileInfo, err error) bool {
	there, statErr := v.root.Lstat(name)
	return errors.Join(err, statErr) == nil && os.SameFile(there, opened)
}

// opened calls one with an opened directory.
func opened(root *os.Root, one func(*os.File) error) error {
	directory, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(one(directory), directory.Close())
}
