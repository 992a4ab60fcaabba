// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package place keeps a volume such that a model's directory is either absent or complete: work is done beside it, made
// durable, and renamed.
package place

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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

// has is true if a name still stands for a file or directory that was opened.
func (v *Volume) has(name string, opened fs.FileInfo, err error) bool {
	there, statErr := v.root.Lstat(name)
	return errors.Join(err, statErr) == nil && os.SameFile(there, opened)
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

const lockPrefix = ".lock-"

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

const (
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

func (v *Volume) recordName() string { return ".model-" + v.name }

// Recorded returns the record of the model; the zero Record is none, such as of a model that an earlier release has fetched.
func (v *Volume) Recorded() (record Record) {
	if err := load(v.root, v.recordName(), maxRecord, &record); err != nil {
		return Record{}
	}
	return record
}

// Record writes the record of the model. Without it, a later start has to verify the files again.
func (v *Volume) Record(record Record) {
	record.Sources = record.Sources[max(0, len(record.Sources)-maxSources):]
	if err := save(v.root, v.recordName(), record); err != nil {
		v.log.Line("what the model is cannot be recorded: %v", err)
	}
}

// load decodes a file of at most size bytes that save has written. Whatever other pods put there, it neither waits nor grows.
func load(root *os.Root, name string, size int64, into any) error {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // A FIFO without a writer ends at once.
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // It was only read.
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > size {
		return errors.Join(err, fs.ErrInvalid)
	}
	return json.NewDecoder(io.LimitReader(file, size)).Decode(into)
}

// save makes a file have a value as JSON: the old or the new one, whenever the process ends.
func save(root *os.Root, name string, value any) error {
	content, err := json.Marshal(value)
	if err != nil {
		return err
	}
	next := name + ".next"
	if err := root.RemoveAll(next); err != nil {
		return err
	}
	if err := root.WriteFile(next, content, 0o644); err != nil {
		return err
	}
	return root.Rename(next, name)
}

// Model opens the directory of the complete model.
func (v *Volume) Model() (*os.Root, error) { return v.root.OpenRoot(v.name) }

const (
	// workPrefix begins the name of a directory in which a process writes a model. The directory has the archive while it is
	// downloaded, the model, and the state that a later process continues from.
	workPrefix = ".fetch-"
	modelName  = "model"
	stateName  = "state"
	// Archive is the name of the archive.
	Archive = "download"
	// ownerName is the file that says which pod works there, and that its process has locked;
	// earlierName is what another one has left.
	ownerName, earlierName = "owner", "earlier"
	// maxOwner bounds the former in bytes.
	maxOwner = 256
	// othersFor is how long the work of other models stays in a volume that several pods share: longer than the kubelet waits before it
	// starts their container again.
	othersFor = time.Hour
)

// workName is the name of a work directory, with that of the model's directory. In a volume that is
// shared, it ends with what is of one process.
var workName = regexp.MustCompile(`^\.fetch-(.+)-[0-9a-f]{16}(?:\.[A-Z2-7]{26})?$`)

// Work is a directory with work in progress. In a volume that is shared, the lock of the model is
// held meanwhile, and that of the directory.
type Work struct {
	*os.Root
	// Continued is true if an earlier process has begun it.
	Continued bool

	volume *Volume
	name   string
	owner  *os.File
}

// WorkName returns the name of the work directory for what a key stands for in a model's directory. A later start with the same
// key, as the same user, continues there.
func WorkName(directory, key string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s", os.Getuid(), key))
	return workPrefix + directory + "-" + hex.EncodeToString(sum[:8])
}

// Begin makes or takes over the work directory with a name. A volume that is shared may have no
// locks that others see: there, the directory is taken over only from a process of this pod that
// has ended. Whatever another one has left is copied, because it may still write into its files,
// wherever they are renamed to.
func (v *Volume) Begin(name string, shared bool) (*Work, error) {
	if !shared {
		return v.own(name)
	}
	ours, earlier, err := v.left(name)
	if err != nil || ours != nil {
		return ours, err
	}
	w, err := v.begin(name+"."+rand.Text(), false)
	if err == nil {
		w.owner, err = v.lockFile(filepath.Join(w.name, ownerName))
	}
	if err != nil {
		return nil, err
	}
	if err := errors.Join(flock(w.owner, syscall.LOCK_EX|syscall.LOCK_NB), w.WriteFile(ownerName, []byte(pod()), 0o666)); err != nil {
		return nil, err
	}
	if earlier == "" {
		return w, nil
	}
	if err := v.root.Rename(earlier, filepath.Join(w.name, earlierName)); err != nil {
		return w, nil //nolint:nilerr // Another pod has taken it: this one begins with nothing.
	}
	v.log.Line("copying what another pod has fetched")
	if err := w.copyEarlier(); err != nil {
		v.log.Line("what another pod has fetched cannot be copied: %v", err)
	}
	w.Continued = true
	return w, w.RemoveAll(earlierName)
}

// own begins the work directory of a pod that has the volume alone.
func (v *Volume) own(name string) (*Work, error) {
	there, err := v.root.Lstat(name)
	continued := err == nil && there.IsDir()
	if !continued {
		if err := v.root.RemoveAll(name); err != nil {
			return nil, err
		}
	}
	return v.begin(name, continued)
}

// begin opens the work directory with a name.
func (v *Volume) begin(name string, continued bool) (*Work, error) {
	if err := v.root.MkdirAll(filepath.Join(name, modelName), 0o775); err != nil {
		return nil, err
	}
	root, err := v.root.OpenRoot(name)
	return &Work{Root: root, Continued: continued, volume: v, name: name}, err
}

// left looks for what processes have left that have ended: the work of one of this pod, or the name
// of another one's directory.
func (v *Volume) left(name string) (ours *Work, earlier string, err error) {
	entries, err := fs.ReadDir(v.root.FS(), ".")
	for _, entry := range entries {
		if there := entry.Name(); !entry.IsDir() || !isWork(there, name) {
			continue
		}
		owner, err := v.lockFile(filepath.Join(entry.Name(), ownerName))
		if err != nil {
			continue // Another process has just taken it, or it is planted.
		}
		if flock(owner, syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			id, err := io.ReadAll(io.LimitReader(owner, maxOwner))
			if err == nil && len(id) > 0 && string(id) == pod() {
				if ours, err = v.begin(entry.Name(), true); err == nil {
					ours.owner = owner
				}
				return ours, "", err
			}
			earlier = entry.Name()
		}
		_ = owner.Close()
	}
	return nil, earlier, err
}

// isWork is true for a work directory with a name, of whichever process.
func isWork(there, name string) bool { return there == name || strings.HasPrefix(there, name+".") }

// pod says which pod this is, and on which boot of its node: all its containers, and no others,
// have these namespaces. Empty is unknown.
func pod() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	ipc, ipcErr := os.Readlink("/proc/self/ns/ipc")
	net, netErr := os.Readlink("/proc/self/ns/net")
	if errors.Join(err, ipcErr, netErr) != nil {
		return ""
	}
	return fmt.Sprint(string(boot), ipc, net)
}

// copyEarlier copies the files of another process, one after the other, and removes each: by a
// reflink where the file system has them.
func (w *Work) copyEarlier() error {
	return fs.WalkDir(w.FS(), earlierName, func(name string, entry fs.DirEntry, err error) error {
		to := strings.TrimPrefix(strings.TrimPrefix(name, earlierName), "/")
		switch {
		case err != nil || to == "" || to == ownerName || !entry.IsDir() && !entry.Type().IsRegular():
			return err
		case to == earlierName:
			return fs.SkipDir
		case entry.IsDir():
			return w.MkdirAll(to, 0o775)
		}
		from, err := w.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer from.Close() //nolint:errcheck // It was only read.
		file, err := w.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, from)
		return errors.Join(err, file.Close(), w.Remove(name))
	})
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
	if err != nil || now.Blocks == 0 {
		return math.MaxInt64
	}
	return int64(now.Bavail) * now.Bsize //nolint:gosec // No volume has so much.
}

// Sync makes the model durable.
func (w *Work) Sync() error { return opened(w.Root, syncAll) }

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
	// What is recorded is of another model, which was removed.
	if err := w.volume.root.RemoveAll(w.volume.recordName()); err != nil {
		return err
	}
	if err := w.volume.root.Rename(filepath.Join(w.name, modelName), w.volume.name); err != nil {
		return err
	}
	w.volume.Record(record)
	return opened(w.volume.root, (*os.File).Sync)
}

// End removes the work directory unless it is kept for the next start. What it cannot remove, the next start removes.
func (w *Work) End(keep bool) {
	err := w.Close()
	defer w.owner.Close() //nolint:errcheck // It only has a lock.
	if !keep {
		err = errors.Join(err, w.volume.root.RemoveAll(w.name))
	}
	if err != nil {
		w.volume.log.Line("work in progress cannot be removed: %v", err)
	}
}

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

// opened calls one with an opened directory.
func opened(root *os.Root, one func(*os.File) error) error {
	directory, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(one(directory), directory.Close())
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
