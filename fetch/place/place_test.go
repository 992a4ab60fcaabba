// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/place"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
)

func open(t *testing.T, path string) *place.Volume {
	t.Helper()
	volume, err := place.Open(path, "model", report.NewLog(&bytes.Buffer{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = volume.Close() })
	return volume
}

func begin(t *testing.T, volume *place.Volume) *place.Work {
	t.Helper()
	work, err := volume.Begin(place.WorkName("model", "key"), false)
	if err != nil {
		t.Fatal(err)
	}
	return work
}

func names(t *testing.T, path string) string {
	t.Helper()
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, each := range entries {
		all = append(all, each.Name())
	}
	return strings.Join(all, " ")
}

func TestPublish(t *testing.T) {
	path := t.TempDir()
	volume := open(t, path)
	work := begin(t, volume)
	if done, err := volume.Complete(); done || err != nil {
		t.Error("work in progress is a model:", done, err)
	}
	model, err := work.Model(false)
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	if err := errors.Join(model.Mkdir("a", 0o755), model.WriteFile("a/b", []byte("x"), 0o644), work.Publish(place.Record{Digest: "sha256:x", Bytes: 1})); err != nil {
		t.Fatal(err)
	}
	work.End(false)
	if got, err := os.ReadFile(filepath.Join(path, "model", "a", "b")); err != nil || string(got) != "x" || names(t, path) != ".model-model model" {
		t.Error(string(got), err, names(t, path))
	}
	if done, err := volume.Complete(); !done || err != nil {
		t.Error(done, err)
	}
	if record := volume.Recorded(); record.Digest != "sha256:x" || record.Bytes != 1 {
		t.Error(record)
	}
	again := begin(t, volume)
	defer again.End(false)
	if err := again.Publish(place.Record{}); err == nil {
		t.Error("a complete model was replaced")
	}
}

// What a model costs on the disk does not grow with its files: none of them is opened again.
func TestPublishOpensNoFile(t *testing.T) {
	path := t.TempDir()
	work := begin(t, open(t, path))
	defer work.End(false)
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch)
	directory := filepath.Join(path, place.WorkName("model", "key"), "model")
	if err := os.WriteFile(filepath.Join(directory, "weights"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.InotifyAddWatch(watch, directory, unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	if err := work.Publish(place.Record{}); err != nil {
		t.Fatal(err)
	}
	events := make([]byte, 4096)
	if n, _ := unix.Read(watch, events); n > 0 && bytes.Contains(events[:n], []byte("weights")) {
		t.Error("a file is opened")
	}
}

func TestComplete(t *testing.T) {
	path := t.TempDir()
	volume := open(t, path)
	if err := os.Symlink(t.TempDir(), filepath.Join(path, "model")); err != nil {
		t.Fatal(err)
	}
	if _, err := volume.Complete(); err == nil || failure.Of(err).Word != failure.Invalid {
		t.Error("a symbolic link:", err)
	}
}

// Neither a new file system, nor a directory that the kubelet has made for a subPath, is a model.
func TestAnEmptyDirectoryIsNoModel(t *testing.T) {
	for _, there := range []string{"model", "model/lost+found"} {
		path := t.TempDir()
		volume := open(t, path)
		if err := os.MkdirAll(filepath.Join(path, there), 0o755); err != nil {
			t.Fatal(err)
		}
		if done, err := volume.Complete(); done || err != nil {
			t.Error(there, done, err)
		}
		work := begin(t, volume)
		model, err := work.Model(false)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(model.WriteFile("a", nil, 0o644), work.Publish(place.Record{}), model.Close()); err != nil || names(t, filepath.Join(path, "model")) != "a" {
			t.Error(there, err)
		}
		work.End(false)
	}
}

// A pod that writes to the volume cannot lead another one out of it, nor to another file, and cannot make it wait or grow.
func TestWhatIsPlantedInTheVolume(t *testing.T) {
	path, outside := t.TempDir(), t.TempDir()
	work := place.WorkName("model", "key")
	fifo := func(name string) error { return syscall.Mkfifo(filepath.Join(path, name), 0o666) }
	if err := errors.Join(os.Symlink(outside, filepath.Join(path, work)), fifo(".model-model")); err != nil {
		t.Fatal(err)
	}
	volume := open(t, path)
	if record := volume.Recorded(); record.Sources != nil {
		t.Error(record)
	}
	for name, plant := range map[string]func() error{
		"nothing":     func() error { return nil },
		"a FIFO":      func() error { return fifo(work + "/state") },
		"a link":      func() error { return os.Symlink("/etc/passwd", filepath.Join(path, work, "state")) },
		"a directory": func() error { return os.Mkdir(filepath.Join(path, work, "state"), 0o755) },
		"a huge file": func() error {
			return errors.Join(os.WriteFile(filepath.Join(path, work, "state"), nil, 0o644), os.Truncate(filepath.Join(path, work, "state"), 1<<40))
		},
	} {
		begun := begin(t, volume)
		if err := plant(); err != nil || begun.State(new(any)) == nil || names(t, outside) != "" {
			t.Error(name, err, names(t, outside))
		}
		begun.End(false)
	}
	if err := os.Symlink(outside, filepath.Join(path, ".lock-model")); err != nil {
		t.Fatal(err)
	}
	if _, err := volume.Lock(); err == nil || failure.Of(err).Word != failure.Invalid || names(t, outside) != "" {
		t.Error("a lock that is a link:", err, names(t, outside))
	}
}

// Nor does what it plants at the place of the record keep a model from being published.
func TestWhatIsPlantedForTheRecord(t *testing.T) {
	for name, plant := range map[string]func(at string) error{
		"a FIFO":      func(at string) error { return syscall.Mkfifo(at, 0o666) },
		"a link":      func(at string) error { return os.Symlink("/etc/passwd", at) },
		"a directory": func(at string) error { return os.MkdirAll(filepath.Join(at, "a", "b"), 0o755) },
	} {
		path := t.TempDir()
		volume := open(t, path)
		work := begin(t, volume)
		err := errors.Join(plant(filepath.Join(path, ".model-model")), work.Publish(place.Record{Digest: "sha256:x"}))
		work.End(false)
		if record := volume.Recorded(); err != nil || record.Digest != "sha256:x" || names(t, path) != ".model-model model" {
			t.Error(name, err, record, names(t, path))
		}
	}
}

// Of several processes that no lock keeps apart, whatever each does between two calls of another, one publishes its model, and each other
// one is told that it is there. What is recorded is of that model, or nothing, until one of them has verified it.
func TestSeveralProcessesPublish(t *testing.T) {
	for range 200 {
		path := t.TempDir()
		volume := open(t, path)
		results := make([]error, 3)
		var group sync.WaitGroup
		for i := range results {
			work, err := volume.Begin(place.WorkName("model", "key"), true)
			if err != nil {
				t.Fatal(err)
			}
			if err := work.WriteFile("model/file", []byte(fmt.Sprint(i)), 0o644); err != nil {
				t.Fatal(err)
			}
			group.Go(func() {
				results[i] = work.Publish(place.Record{Digest: fmt.Sprint(i)})
				work.End(true)
			})
		}
		group.Wait()
		published := slices.Index(results, nil)
		for i, err := range results {
			if i != published && !errors.Is(err, fs.ErrExist) {
				t.Error(published, i, err)
			}
		}
		content, err := os.ReadFile(filepath.Join(path, "model", "file"))
		if digest := volume.Recorded().Digest; err != nil || string(content) != fmt.Sprint(published) || digest != "" && digest != string(content) {
			t.Error(published, string(content), digest, err)
		}
	}
}

// What others may use or continue stays: by the lock of their model.
func TestLeftovers(t *testing.T) {
	path := t.TempDir()
	volume := open(t, path)
	mine, others, third := place.WorkName("model", "key"), place.WorkName("other", "key"), place.WorkName("third", "key")
	old := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{mine, others, third, ".fetch-other", "lost+found"} {
		if err := os.MkdirAll(filepath.Join(path, name, "model", "a"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	held := func(name string) *os.File {
		file, err := os.Create(filepath.Join(path, name))
		if err = errors.Join(err, syscall.Flock(int(file.Fd()), syscall.LOCK_EX)); err != nil {
			t.Fatal(err)
		}
		return file
	}
	lock := held(".lock-other")
	for _, each := range []struct {
		name   string
		shared bool
		before func()
		gone   []string
	}{
		{"recent", true, func() {}, nil},
		{"in use", true, func() {
			for _, name := range []string{mine, others, third} {
				_ = os.Chtimes(filepath.Join(path, name), old, old)
			}
		}, []string{third}},
		{"no more in use", true, func() { _ = lock.Close() }, []string{others}},
		{"of a pod's own volume", false, func() { _ = os.MkdirAll(filepath.Join(path, others), 0o755) }, []string{others}},
	} {
		before := names(t, path)
		each.before()
		if each.name == "of a pod's own volume" {
			before += " " + others
		}
		if err := volume.RemoveLeftovers(each.shared, mine); err != nil {
			t.Error(each.name, err)
		}
		for name := range strings.FieldsSeq(before) {
			if _, err := os.Stat(filepath.Join(path, name)); (err != nil) != slices.Contains(each.gone, name) {
				t.Error(each.name, name, err)
			}
		}
	}
	if err := volume.RemoveLeftovers(false); err != nil || strings.Contains(names(t, path), mine) || !strings.HasPrefix(names(t, path), ".fetch-other ") || !strings.HasSuffix(names(t, path), " lost+found") {
		t.Error(err, names(t, path))
	}
}

// What an ended process of this pod has left is continued in place; what another pod's has left is
// copied, and a process that lives is left alone.
func TestWorkInASharedVolume(t *testing.T) {
	name := place.WorkName("model", "key")
	for whose, each := range map[string]struct{ continued, inPlace, lives bool }{
		"this pod": {continued: true, inPlace: true}, "another pod": {continued: true}, "unknown": {continued: true}, "a process that lives": {lives: true},
	} {
		path := t.TempDir()
		volume := open(t, path)
		first, err := volume.Begin(name, true)
		if err != nil || first.Continued {
			t.Fatal(err)
		}
		model, err := first.Model(false)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(model.Mkdir("a", 0o755), model.WriteFile("a/b", []byte("weights"), 0o644), first.SaveState("a"), os.Symlink("/etc/passwd", filepath.Join(path, names(t, path), "model", "link"))); err != nil {
			t.Fatal(err)
		}
		held, err := model.OpenFile("a/b", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		was, owner := names(t, path), filepath.Join(path, names(t, path), "owner")
		if !each.lives {
			first.End(true)
		}
		switch whose {
		case "another pod":
			err = os.WriteFile(owner, []byte("other"), 0o644)
		case "unknown":
			err = os.Remove(owner)
		}
		if err != nil {
			t.Fatal(err)
		}
		second, err := volume.Begin(name, true)
		if err != nil || second.Continued != each.continued {
			t.Fatal(whose, err, second.Continued)
		}
		var state string
		if err := second.State(&state); (err == nil && state == "a") != each.continued {
			t.Error(whose, state, err)
		}
		if _, err := held.WriteAt([]byte("other"), 0); err != nil { // The first process still writes.
			t.Fatal(err)
		}
		into, err := second.Model(false)
		if err != nil {
			t.Fatal(err)
		}
		want := map[bool]string{true: "otherts", false: "weights"}[each.inPlace]
		if got, err := into.ReadFile("a/b"); each.continued && (err != nil || string(got) != want) || !each.continued && err == nil {
			t.Error(whose, string(got), err)
		}
		if _, err := into.Lstat("link"); err == nil && !each.inPlace {
			t.Error(whose, "a link is copied")
		}
		if err := into.WriteFile("c", nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if now := names(t, path); (now == was) != each.inPlace || (len(strings.Fields(now)) > 1) != each.lives {
			t.Error(whose, was, now)
		}
		if err := second.Publish(place.Record{}); err != nil {
			t.Error(whose, err)
		}
		second.End(false)
		if each.lives {
			if err := first.Publish(place.Record{}); !errors.Is(err, fs.ErrExist) {
				t.Error("the second that publishes:", err)
			}
			first.End(false)
		}
		_ = errors.Join(model.Close(), into.Close(), held.Close())
		if now := names(t, path); now != ".model-model model" {
			t.Error(whose, now)
		}
	}
}

// A work directory that was taken away, or replaced, is not published.
func TestWorkThatIsNoMoreOnesOwn(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		path := t.TempDir()
		volume := open(t, path)
		work := begin(t, volume)
		name := filepath.Join(path, place.WorkName("model", "key"))
		err := os.Rename(name, name+".gone")
		if replaced {
			err = errors.Join(err, os.MkdirAll(filepath.Join(name, "model", "a"), 0o755))
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := work.Publish(place.Record{}); err == nil || failure.Of(err).Word != failure.Failed {
			t.Error(replaced, err)
		}
		if done, err := volume.Complete(); done || err != nil {
			t.Error(replaced, "something is published", err)
		}
	}
}

// A lock whose file was removed while it was waited for is taken anew.
func TestALockThatWasRemoved(t *testing.T) {
	path := t.TempDir()
	release, err := open(t, path).Lock()
	if err != nil {
		t.Fatal(err)
	}
	var log waiting
	log.seen = make(chan struct{})
	second, err := place.Open(path, "model", report.NewLog(&log))
	if err != nil {
		t.Fatal(err)
	}
	locked := make(chan error)
	go func() {
		_, err := second.Lock()
		locked <- err
	}()
	<-log.seen
	if err := os.Remove(filepath.Join(path, ".lock-model")); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, path).Lock(); err != nil { // The next process has another file.
		t.Fatal(err)
	}
	release()
	select {
	case err := <-locked:
		t.Error("two processes have the lock:", err)
	case <-time.After(200 * time.Millisecond):
	}
}

// waiting tells of the first line.
type waiting struct {
	seen chan struct{}
	once sync.Once
}

func (w *waiting) Write(line []byte) (int, error) {
	w.once.Do(func() { close(w.seen) })
	return len(line), nil
}

// Only a user who may remove directories of the volume may remove those of models.
func TestDirectoriesOfAClaim(t *testing.T) {
	for mode, want := range map[os.FileMode]os.FileMode{0o775 | os.ModeSetgid: 0o775 | os.ModeSetgid, 0o755: 0o755} {
		path := t.TempDir()
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		work := begin(t, open(t, path))
		model, err := work.Model(true)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(model.Mkdir("a", 0o775), work.Publish(place.Record{})); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"model", "model/a"} {
			if info, err := os.Stat(filepath.Join(path, name)); err != nil || info.Mode()&^os.ModeDir != want {
				t.Error(name, info.Mode(), err)
			}
		}
	}
}
