// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	work, err := volume.Begin()
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
	model, err := work.Model()
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	if err := errors.Join(model.Mkdir("a", 0o755), model.WriteFile("a/b", []byte("x"), 0o644), work.Publish()); err != nil {
		t.Fatal(err)
	}
	work.End()
	if got, err := os.ReadFile(filepath.Join(path, "model", "a", "b")); err != nil || string(got) != "x" || names(t, path) != "model" {
		t.Error(string(got), err, names(t, path))
	}
	if done, err := volume.Complete(); !done || err != nil {
		t.Error(done, err)
	}
	again := begin(t, volume)
	defer again.End()
	if err := again.Publish(); err == nil {
		t.Error("a complete model was replaced")
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

func TestLeftoversAreRemovedUnlessTheyAreInUse(t *testing.T) {
	path := t.TempDir()
	volume := open(t, path)
	used := begin(t, volume)
	inUse := names(t, path)
	for _, directory := range []string{".fetch-0123456789abcdef/model/a", ".fetch-other", "lost+found"} {
		if err := os.MkdirAll(filepath.Join(path, directory), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(path, ".fetch-0123456789abcdef", "lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := volume.RemoveLeftovers(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, path); got != inUse+" .fetch-other lost+found" && got != ".fetch-other lost+found "+inUse && !strings.Contains(got, inUse) || strings.Contains(got, "0123456789abcdef") {
		t.Error(got)
	}
	used.End()
	if err := volume.RemoveLeftovers(); err != nil || names(t, path) != ".fetch-other lost+found" {
		t.Error(err, names(t, path))
	}
}

func TestTheLockIsExclusive(t *testing.T) {
	path := t.TempDir()
	release, err := open(t, path).Lock(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := open(t, path).Lock(canceled, time.Hour); !errors.Is(err, context.Canceled) {
		t.Error("a second process has the lock:", err)
	}
	release()
	again, err := open(t, path).Lock(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

// Processes that begin and remove leftovers at the same time never lose their work.
func TestManyBeginAtOnce(t *testing.T) {
	path := t.TempDir()
	failed := make(chan error)
	for range 8 {
		go func() { failed <- beginOften(path) }()
	}
	for range 8 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if names(t, path) != "" {
		t.Error(names(t, path))
	}
}

func beginOften(path string) error {
	volume, err := place.Open(path, "model", nil)
	if err != nil {
		return err
	}
	defer volume.Close()
	for range 20 {
		work, err := volume.Begin()
		if err != nil {
			return err
		}
		if err := volume.RemoveLeftovers(); err != nil {
			return err
		}
		file, err := work.Download()
		if err != nil {
			return err
		}
		if err := errors.Join(file.Close(), work.RemoveDownload()); err != nil {
			return err
		}
		work.End()
	}
	return nil
}
