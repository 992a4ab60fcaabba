// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package binaries provides the programs of the local control plane: etcd,
// three Kubernetes components, kubectl, kwok and kwokctl.
//
// They are kept in the user's cache directory, one directory for each set of
// versions, and shared by all clones. What is missing is downloaded from the
// site that publishes it, or else built from the Go modules that
// hack/tools/*/go.mod pin; either way its content is checked against a
// checksum (the site's own, or go.sum).
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

// OverrideEnv names a directory that holds all the programs already. Nothing
// is downloaded or built then.
const OverrideEnv = "MODELBOX_BINARIES"

// recipe is part of the key of a set: raise it when the same modules are to
// give other binaries, for instance after a change of the linker's flags.
const recipe = "1"

// Config says where things are.
type Config struct {
	// Root is the repository; its hack/tools pin the versions.
	Root string
	// Cache is the directory in which sets are kept; see [DefaultCache].
	Cache string
	// Override, if not empty, is used instead of a set; see [OverrideEnv].
	Override string
	// Report tells what takes long.
	Report *progress.Reporter
}

// DefaultCache is modelbox-operator in the user's cache directory. It fails
// when there is none: on Unix, when neither XDG_CACHE_HOME nor HOME is set.
func DefaultCache() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache directory: %w (set XDG_CACHE_HOME to a directory of yours)", err)
	}
	return filepath.Join(dir, "modelbox-operator"), nil
}

// Ensure returns the directory that holds every program, after it has
// downloaded or built those that are missing. Programs arrive whole, by a
// rename: a caller that is interrupted leaves none that is half made, and
// callers at the same time wait for the first one's work.
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

// missing lists the tools that dir does not hold as executable files.
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

// key names a set: readable first, then unique. The Go release is left out, so
// that its updates do not cost everybody a rebuild.
func (p pins) key(goos, goarch string) string {
	hash := sha256.New()
	_, _ = io.WriteString(hash, recipe)
	hash.Write(p.digest)
	return fmt.Sprintf("%s-%s-%s-%x", p.version(kubernetesModule), goos, goarch, hash.Sum(nil)[:6])
}

// filler makes one set complete. Its functions are fields so that its tests
// need neither network nor compiler.
type filler struct {
	dir    string
	pins   pins
	report *progress.Reporter
	// locate says where a tool can be downloaded, if anywhere.
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

// lock excludes other commands that want to provide the same set. They may need
// minutes, so the wait is a step of its own.
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

// makeDirs makes the set's directory and, beside it, one for what is not
// complete yet. That has a new name each time: a compiler may have outlived the
// command that started it, and still be about to write to the old one.
func (f *filler) makeDirs() (partial string, err error) {
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return "", fmt.Errorf("making the programs' directory: %w", err)
	}
	// Only the owner of the lock has such a directory, so one that is here is
	// what a killed command left.
	left, err := filepath.Glob(f.dir + ".partial-*")
	if err != nil {
		return "", fmt.Errorf("looking for an earlier attempt: %w", err)
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return "", fmt.Errorf("clearing away an earlier attempt: %w", err)
		}
	}
	partial, err = os.MkdirTemp(filepath.Dir(f.dir), filepath.Base(f.dir)+".partial-")
	if err != nil {
		return "", fmt.Errorf("making a directory for incomplete programs: %w", err)
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

// download says whether it put t at dest. Why it did not is reported, not
// returned: to the caller that is no more than a reason to build.
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
		f.report.Say("Programs that are not downloaded are built from their Go modules. " +
			"The first time that takes about eight minutes in all on two cores; after that they are kept.")
	}
	step := f.report.Start("building %s %s from its Go module (%s)", t.name, f.pins.version(t.module), count)
	defer step.Fail()
	if err := f.build(ctx, f.pins, t, dest, step); err != nil {
		return err
	}
	step.Done()
	return nil
}

// install moves a finished program to its place. Both are in one file system,
// so nobody ever sees a part of it.
func install(from, to string) error {
	if err := os.Chmod(from, 0o755); err != nil {
		return fmt.Errorf("making %s executable: %w", filepath.Base(to), err)
	}
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("putting %s in its place: %w", filepath.Base(to), err)
	}
	return nil
}
