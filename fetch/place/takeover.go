// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
)

const (
	// ownerName is the file that says which pod works there, and that its process has locked;
	// earlierName is what another one has left.
	ownerName, earlierName = "owner", "earlier"
	// maxOwner bounds the former in bytes.
	maxOwner = 256
)

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
	w, err := v.fresh(name+"."+rand.Text(), earlier)
	if err != nil || !w.Continued {
		return w, err
	}
	v.log.Line("copying what another pod has fetched")
	if err := w.copyEarlier(); err != nil {
		v.log.Line("what another pod has fetched cannot be copied: %v", err)
	}
	return w, w.RemoveAll(earlierName)
}

// fresh begins a work directory that this process owns, with an earlier one in it, or leaves nothing.
func (v *Volume) fresh(name, earlier string) (*Work, error) {
	w, err := v.begin(name, false)
	if err == nil {
		w.owner, err = v.lockFile(filepath.Join(name, ownerName))
	}
	if err == nil {
		err = errors.Join(flock(w.owner, syscall.LOCK_EX|syscall.LOCK_NB), w.WriteFile(ownerName, []byte(pod()), 0o666))
	}
	if err == nil && earlier != "" {
		err = v.root.Rename(earlier, filepath.Join(name, earlierName))
		if w.Continued = err == nil; failure.Of(err).Word != failure.NoSpace { // Another pod has taken it, or it may not be moved.
			err = nil
		}
	}
	if err != nil {
		return nil, errors.Join(err, v.root.RemoveAll(name))
	}
	return w, nil
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
		lock := filepath.Join(entry.Name(), ownerName)
		owner, err := v.lockFile(lock)
		if err != nil {
			continue // Another process has just taken it, or it is planted.
		}
		locked := flock(owner, syscall.LOCK_EX|syscall.LOCK_NB) == nil
		if info, err := owner.Stat(); locked && v.has(lock, info, err) { // Else its process has just removed it with the directory.
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

// copyEarlier copies the files of another process, one after the other, and removes each. A volume
// may have no room for some of them.
func (w *Work) copyEarlier() error {
	return fs.WalkDir(w.FS(), earlierName, func(name string, entry fs.DirEntry, err error) error {
		to := strings.TrimPrefix(strings.TrimPrefix(name, earlierName), "/")
		switch {
		case to == earlierName:
			return fs.SkipDir
		case err != nil || to == ownerName || !entry.Type().IsRegular():
			return err
		}
		if err := w.copyFile(name, to); err != nil {
			w.volume.log.Line("%s cannot be copied: %v", to, err)
			_ = w.Remove(to)
		}
		return w.Remove(name)
	})
}

// copyFile copies a file, by a reflink where the file system has them.
func (w *Work) copyFile(name, to string) error {
	from, err := w.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // It was only read.
	if err := w.MkdirAll(filepath.Dir(to), 0o775); err != nil {
		return err
	}
	file, err := w.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	return errors.Join(err, file.Close())
}
