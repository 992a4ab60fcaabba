// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"strings"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/source"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

// flags are the command line.
type flags struct {
	// Settings are those of all models, with the one model of the flags if there is no --models.
	source.Settings
	models         []modeluri.Argument
	maxRatio       int64
	terminationLog string
	progressEvery  time.Duration
	downloader     *download.Downloader
}

// parse reads the command line. The termination log is known even where the rest is wrong.
func parse(args []string) (flags, error) {
	f := flags{downloader: &download.Downloader{}}
	set := flag.NewFlagSet("fetch-model", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&f.terminationLog, "termination-log", "/dev/termination-log", "the file that the last word goes into; empty is none")
	set.StringVar(&f.URI, "uri", "", "spec.model.uri")
	set.StringVar(&f.SHA256, "sha256", "", "spec.model.sha256")
	set.StringVar(&f.Volume, "volume", "", "the directory that the volume is mounted at")
	set.StringVar(&f.Directory, "directory", "", "the name of the model's directory in the volume")
	set.Int64Var(&f.SizeLimit, "size-limit", 0, "how many bytes of the volume the fetch may need")
	var mirrors []string
	list(set, "mirror", "PREFIX=REPLACEMENT for the beginning of URLs; may be repeated", &mirrors)
	list(set, "include", "a pattern for the files of hf:// and of a folder of s3:// that are fetched, as hf download has; may be repeated", &f.Include)
	list(set, "exclude", "a pattern for those that are not; may be repeated", &f.Exclude)
	set.BoolVar(&f.Shared, "shared", false, "other pods fetch the same model into the same volume")
	set.IntVar(&f.MaxFiles, "max-files", 100_000, "how many files a model may have")
	set.Int64Var(&f.maxRatio, "max-ratio", 1000, "how many times its size an archive may become beyond 100 MiB")
	set.DurationVar(&f.progressEvery, "progress-every", 10*time.Second, "how often the progress is logged")
	set.DurationVar(&f.downloader.ConnectFor, "connect-for", 10*time.Second, "how long attempts may find no server that can serve, until the first byte of the model comes")
	set.DurationVar(&f.downloader.RetryFor, "retry-for", 30*time.Minute, "how long attempts may bring no new byte")
	set.IntVar(&f.downloader.Connections, "connections", 8, "how many connections fetch files and parts of files at once")
	set.Func("models", "several models as JSON, instead of the flags of one", func(text string) (err error) {
		f.models, err = parseModels(text)
		return err
	})
	if err := set.Parse(args); err != nil {
		return f, failure.New(failure.Invalid, "the command line is wrong: %w: correct the arguments of the container", err)
	}
	for _, text := range mirrors { // Not by the FlagSet, whose errors have the value.
		rule, err := guard.ParseRule(text)
		if err != nil {
			return f, err
		}
		f.Mirrors = append(f.Mirrors, rule)
	}
	err := f.check(set.NArg())
	return f, err
}

// list adds a flag that may be repeated.
func list(set *flag.FlagSet, name, usage string, to *[]string) {
	set.Func(name, usage, func(text string) error {
		*to = append(*to, text)
		return nil
	})
}

func (f *flags) check(rest int) error {
	switch {
	case rest > 0:
		return failure.New(failure.Invalid, "there are arguments that are no flags: correct the arguments of the container")
	case len(f.models) > 0 && (f.URI != "" || f.Directory != ""):
		return failure.New(failure.Invalid, "--models is instead of --uri and --directory: remove one of them")
	case f.MaxFiles <= 0 || f.maxRatio <= 0 || f.progressEvery <= 0 || f.downloader.ConnectFor <= 0 || f.downloader.RetryFor <= 0 || f.downloader.Connections <= 0:
		return failure.New(failure.Invalid, "--max-files, --max-ratio, --progress-every, --connect-for, --retry-for and --connections are more than zero: correct them")
	case len(f.models) == 0:
		f.models = []modeluri.Argument{f.Argument}
	}
	return checkModels(f.models, f.Volume)
}

// checkModels refuses models of which something is missing, and two in one place. The volume is that of those that say none.
func checkModels(models []modeluri.Argument, volume string) error {
	places := map[[2]string]bool{}
	for i := range models {
		m := &models[i]
		m.Volume = cmp.Or(m.Volume, volume)
		at := [2]string{m.Volume, m.Directory}
		switch {
		case m.URI == "" || m.Volume == "" || m.Directory == "":
			return failure.New(failure.Invalid, "--uri, --volume and --directory are required: add what is missing")
		case m.SizeLimit <= 0:
			return failure.New(failure.Invalid, "--size-limit is required, and more than zero: correct it")
		case places[at]:
			return failure.New(failure.Invalid, "two models have the directory %s: give each its own", m.Directory)
		}
		places[at] = true
	}
	return nil
}

// parseModels reads --models.
func parseModels(text string) (models []modeluri.Argument, err error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&models); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) || len(models) == 0 {
		return nil, errors.New("it is no list of models")
	}
	return models, nil
}
