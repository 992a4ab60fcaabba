// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"io"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/mirror"
)

// flags are the command line.
type flags struct {
	uri, sha256       string
	volume, directory string
	sizeLimit         int64
	mirrors           mirror.Rules
	shared            bool
	maxFiles          int
	maxRatio          int64
	terminationLog    string
	progressEvery     time.Duration
	connectFor        time.Duration
	retryFor          time.Duration
}

// parse reads the command line. The termination log is known even where the rest is wrong.
func parse(args []string) (flags, error) {
	var f flags
	set := flag.NewFlagSet("fetch-model", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&f.terminationLog, "termination-log", "/dev/termination-log", "the file that the last word goes into; empty is none")
	set.StringVar(&f.uri, "uri", "", "spec.model.uri")
	set.StringVar(&f.sha256, "sha256", "", "spec.model.sha256")
	set.StringVar(&f.volume, "volume", "", "the directory that the volume is mounted at")
	set.StringVar(&f.directory, "directory", "", "the name of the model's directory in the volume")
	set.Int64Var(&f.sizeLimit, "size-limit", 0, "how many bytes of the volume the fetch may need")
	set.Func("mirror", "PREFIX=REPLACEMENT for the beginning of URLs; may be repeated", func(text string) error {
		rule, err := mirror.Parse(text)
		f.mirrors = append(f.mirrors, rule)
		return err
	})
	set.BoolVar(&f.shared, "shared", false, "other pods fetch the same model into the same volume")
	set.IntVar(&f.maxFiles, "max-files", 100_000, "how many files a model may have")
	set.Int64Var(&f.maxRatio, "max-ratio", 1000, "how many times its size an archive may become beyond 100 MiB")
	set.DurationVar(&f.progressEvery, "progress-every", 10*time.Second, "how often the progress is logged")
	set.DurationVar(&f.connectFor, "connect-for", 10*time.Second, "how long attempts may take until the first byte of the model comes")
	set.DurationVar(&f.retryFor, "retry-for", 30*time.Minute, "how long attempts may bring no new byte")
	if err := set.Parse(args); err != nil {
		return f, failure.New(failure.Invalid, "the command line is wrong: %w: correct the arguments of the container", err)
	}
	return f, f.check(set.NArg())
}

func (f flags) check(rest int) error {
	switch {
	case rest > 0:
		return failure.New(failure.Invalid, "there are arguments that are no flags: correct the arguments of the container")
	case f.uri == "" || f.volume == "" || f.directory == "":
		return failure.New(failure.Invalid, "--uri, --volume and --directory are required: add what is missing")
	case f.sizeLimit <= 0 || f.maxFiles <= 0 || f.maxRatio <= 0 || f.progressEvery <= 0 || f.connectFor <= 0 || f.retryFor <= 0:
		return failure.New(failure.Invalid, "--size-limit is required, and it, --max-files, --max-ratio, --progress-every, --connect-for and --retry-for are more than zero: correct them")
	}
	return nil
}
