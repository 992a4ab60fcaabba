// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// workPrefix begins the name of a directory in which a process writes a model. The directory has the archive while it is
	// downloaded, the model, its record, and the state that a later process continues from.
	workPrefix = ".fetch-"
	modelName  = "model"
	stateName  = "state"
	recordName = "record"
	// Archive is the name of the archive.
	Archive = "download"
)

// Work is a directory with work in progress. In a volume that is shared, the lock of the model is
// held meanwhile, and that of the directory.
type Work struct {
	*os.Root
	// Continued is true if an earlier process has begun it.
	Continued bool

	volume    *Volume
	name      string
	owner     *os.File
	published bool
}

// WorkName returns the name of the work directory for what a key stands for in a model's directory. A later start with the same
// key, as the same user, continues there.
func WorkName(directory, key string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s", os.Getuid(), key))
	return workPrefix + directory + "-" + hex.EncodeToString(sum[:8])
}

// Model opens the directory that Publish renames, with what an earlier start left in it, or without.
func (w *Work) Model(empty bool) (*os.Root, error) {
	if empty {
		if err := errors.Join(w.RemoveAll(modelName), w.Mkdir(modelName, 0o775)); err != nil {
			return nil, err
		}
	}
	return w.OpenRoot(modelName)
}

// maxState bounds the state in bytes: that of 8 files with 1000 parts each.
const maxState = 1 << 20

// State decodes what SaveState wrote last, in this process or an earlier one.
func (w *Work) State(into any) error { return load(w.Root, stateName, maxState, into) }

// SaveState replaces the state at once.
func (w *Work) SaveState(state any) error { return save(w.Root, stateName, state) }

// IgnoresCase is true if names that differ by their case alone are one file.
func (w *Work) IgnoresCase() bool {
	_, err := w.Lstat(strings.ToUpper(modelName))
	return err == nil
}

// Free returns how many bytes the volume has left; where it does not say, as many as there can be.
func (w *Work) Free() int64 {
	var now unix.Statfs_t
	err := opened(w.Root, func(directory *os.File) error { return unix.Fstatfs(int(directory.Fd()), &now) })
	if err != nil {
		return math.MaxInt64
	}
	return free(now)
}

// free multiplies by the unit of the counts, which is not the size of blocks in every file system of
// FUSE (statvfs(3)).
func free(now unix.Statfs_t) int64 {
	if now.Blocks == 0 {
		return math.MaxInt64
	}
	return int64(now.Bavail) * cmp.Or(now.Frsize, now.Bsize) //nolint:gosec // No volume has so much.
}
