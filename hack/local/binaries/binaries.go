// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package binaries provides the programs of the local control plane: etcd,
// three Kubernetes components, kubectl, kwok and kwokctl.
//
// They are kept in the user's cache directory, in one directory for each set of
// versions, and shared by all clones. A missing program is downloaded from the site
// that publishes it, or else built from the Go modules that hack/tools/*/go.mod pin. In
// both cases its content is verified with a checksum (the site's own, or go.sum).
package binaries

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/hack/local/lock"
	"github.com/modelbox-operator/modelbox-operator/hack/local/progress"
)

// OverrideEnv names a directory that already contains all programs. Then nothing is
// downloaded or built.
const OverrideEnv = "MODELBOX_BINARIES"

// recipe is part of the key of a set. Increase it if the same modules must be built
// again, for instance after a change of the linker's flags.
const recipe = "1"

// Config holds the directories that Ensure uses.
type Config struct {
	// Root is the repository; its hack/tools pin the versions.
	Root string
	// Cache is the directory in which sets are kept; see [DefaultCache].
	Cache string
	// Override, if not empty, is used instead of a set; see [OverrideEnv].
	Override string
	// Report shows the progress of long steps.
	Report *progress.Reporter
}

// DefaultCache returns modelbox-operator in the user's cache directory. It fails if there
// is none: on Unix, if neither XDG_CACHE_HOME nor HOME is set.
func DefaultCache() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache directory: %w (set XDG_CACHE_HOME to a directory of yours)", err)
	}
	return filepath.Join(dir, "modelbox-operator"), nil
}

// Ensure returns the directory that contains every program, after it has
// downloaded or built the missing ones. A program is complete when it appears, because
// it is moved there by a rename: an interrupted call leaves no incomplete program.
// Concurrent calls wait for the first one.
func Ensure(ctx context.Context, config Config) (string, error) {
	if config.Override != "" {
		return override(config.Override)
	}
	pins, err := readPins(ctx, config.Root)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(config.Cache, pins.key(runtime.GOOS, runtime.GOARCH))
	if len(missing(dir)) == 0 {
		return dir, nil
	}
	web := newFetcher(officialSites)
	f := &filler{dir: dir, pins: pins, report: config.Report, locate: web.locate, fetch: web.fetch, build: goBuild}
	if err := f.fill(ctx); err != nil {
		return "", fmt.Errorf("providing the control plane's programs: %w", err)
	}
	return dir, nil
}

func override(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolving %s: %w", OverrideEnv, err)
	}
	if absent := missing(dir); len(absent) > 0 {
		return "", fmt.Errorf("%s is %s, which lacks %s: add them or unset the variable",
			OverrideEnv, dir, strings.Join(names(absent), ", "))
	}
	return dir, nil
}

// missing lists the tools that dir does not contain as executable files.
func missing(dir string) []tool {
	var absent []tool
	for _, t := range tools {
		info, err := os.Stat(filepath.Join(dir, t.name))
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 || info.Size() == 0 {
			absent = append(absent, t)
		}
	}
	return absent
}

// key names a set: a readable part, then a unique one. It does not contain the Go
// release, so that an update of Go needs no rebuild.
func (p pins) key(goos, goarch string) string {
	hash := sha256.New()
	_, _ = io.WriteString(hash, recipe)
	hash.Write(p.digest)
	return fmt.Sprintf("%s-%s-%s-%x", p.version(kubernetesModule), goos, goarch, hash.Sum(nil)[:6])
}

// filler completes one set. Its functions are fields so that its tests need neither a
// network nor a compiler.
type filler struct {
	dir    string
	pins   pins
	report *progress.Reporter
	// locate returns where a tool can be downloaded, if it is published.
	locate func(t tool, version string) (release, bool)
	fetch  func(ctx context.Context, from release, dest string, step *progress.Step) error
	build  func(ctx context.Context, p pins, t tool, dest string, step *progress.Step) error

	announced bool
}

func (f *filler) fill(ctx context.Context) error {
	unlock, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()

	partial, err := f.makeDirs()
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(partial) }()

	absent := missing(f.dir)
	for i, t := range absent {
		if err := f.add(ctx, t, partial, fmt.Sprintf("%d of %d", i+1, len(absent))); err != nil {
			return err
		}
	}
	return nil
}

// lock excludes other commands that provide the same set. They may need minutes, so
// waiting for them is shown as a step.
func (f *filler) lock(ctx context.Context) (unlock func(), err error) {
	var step *progress.Step
	unlock, err = lock.Acquire(ctx, f.dir+".lock", func() {
		step = f.report.Start("waiting for another command that is providing the same programs")
	})
	if step != nil {
		step.Done()
	}
	return unlock, err
}

// makeDirs creates the set's directory and a second one for incomplete programs. The
// second one has a new name each time: a compiler of an earlier command may still be
// running and write to the old one.
func (f *filler) makeDirs() (partial string, err error) {
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return "", fmt.Errorf("creating the programs' directory: %w", err)
	}
	// Only the holder of the lock has such a directory, so an existing one is from a
	// command that was killed.
	left, err := filepath.Glob(f.dir + ".partial-*")
	if err != nil {
		return "", fmt.Errorf("looking for an earlier attempt: %w", err)
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return "", fmt.Errorf("removing an earlier attempt: %w", err)
		}
	}
	partial, err = os.MkdirTemp(filepath.Dir(f.dir), filepath.Base(f.dir)+".partial-")
	if err != nil {
		return "", fmt.Errorf("creating a directory for incomplete programs: %w", err)
	}
	return partial, nil
}

func (f *filler) add(ctx context.Context, t tool, partial, count string) error {
	made := filepath.Join(partial, t.name)
	if !f.download(ctx, t, made, count) {
		if err := f.compile(ctx, t, made, count); err != nil {
			return err
		}
	}
	return install(made, filepath.Join(f.dir, t.name))
}

// download reports whether it downloaded t to dest. It prints an error instead of
// returning it, because the caller then builds the program.
func (f *filler) download(ctx context.Context, t tool, dest, count string) bool {
	version := f.pins.version(t.module)
	from, published := f.locate(t, version)
	if !published {
		return false
	}
	step := f.report.Start("downloading %s %s (%s)", t.name, version, count)
	defer step.Fail()
	if err := f.fetch(ctx, from, dest, step); err != nil {
		step.Fail()
		f.report.Say("  %v; it is built instead", err)
		return false
	}
	step.Done()
	return true
}

func (f *filler) compile(ctx context.Context, t tool, dest, count string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if !f.announced {
		f.announced = true
		f.report.Say("Programs that cannot be downloaded are built from their Go modules. " +
			"The first time, this takes about eight minutes on two cores; after that, the programs are in the cache.")
	}
	step := f.report.Start("building %s %s from its Go module (%s)", t.name, f.pins.version(t.module), count)
	defer step.Fail()
	if err := f.build(ctx, f.pins, t, dest, step); err != nil {
		return err
	}
	step.Done()
	return nil
}

// install moves a complete program to its final path. Both paths are in one file system,
// so the rename is atomic.
func install(from, to string) error {
	if err := os.Chmod(from, 0o755); err != nil {
		return fmt.Errorf("making %s executable: %w", filepath.Base(to), err)
	}
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("moving %s to its directory: %w", filepath.Base(to), err)
	}
	return nil
}
