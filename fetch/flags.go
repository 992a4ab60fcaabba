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

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/place"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
	"github.com/modelbox-operator/modelbox-operator/fetch/source"
	"github.com/modelbox-operator/modelbox-operator/kinds/modeluri"
)

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

// all returns the models, each with its volume.
func (f flags) all() []modeluri.Argument {
	if len(f.models) == 0 {
		return []modeluri.Argument{f.one}
	}
	for i := range f.models {
		f.models[i].Volume = cmp.Or(f.models[i].Volume, f.one.Volume)
	}
	return f.models
}

// checkModels refuses models of which something is missing, and two in one place.
func checkModels(models []modeluri.Argument) error {
	places := map[[2]string]bool{}
	for _, m := range models {
		at := [2]string{m.Volume, m.Directory}
		switch {
		case m.URI == "" || m.Volume == "" || m.Directory == "":
			return failure.New(failure.Invalid, "--uri, --volume and --directory are required: add what is missing")
		case m.SizeLimit <= 0:
			return failure.New(failure.Invalid, "--size-limit is required, and more than zero: correct it")
		case places[at]:
			return failure.New(failure.Invalid, "two models have the directory %s: give each its own", failure.Quote(m.Directory))
		}
		places[at] = true
	}
	return nil
}

// settings returns what a model's URI is resolved with.
func (f flags) settings(m modeluri.Argument, getenv func(string) string, log *report.Log) source.Settings {
	return source.Settings{Argument: m, Getenv: environment(m.EnvPrefix, getenv), Mirrors: f.mirrors, MaxFiles: f.maxFiles, Hide: log.Hide}
}

// identity are the variables that say who a pod is, and not what a Secret of a model has.
var identity = []string{"AWS_ROLE_", "AWS_WEB_IDENTITY_", "AWS_CONTAINER_", "AWS_REGION"}

// environment returns the variables of a model, whose names begin with a prefix: no model gets the credentials of another one.
func environment(envPrefix string, of func(string) string) func(string) string {
	if envPrefix == "" {
		return of
	}
	return func(key string) string {
		value := of(envPrefix + key)
		for _, prefix := range identity {
			if value == "" && strings.HasPrefix(key, prefix) {
				value = of(key)
			}
		}
		return value
	}
}

// workOf returns the key, and the name, of the directory in which a start continues what an earlier one fetched of the same model.
func workOf(s source.Settings) (key, name string) {
	key = strings.Join([]string{s.URI, strings.ToLower(s.SHA256), s.Identity(), strings.Join(s.Include, "\x00"), strings.Join(s.Exclude, "\x00")}, "\x00\x00")
	return key, place.WorkName(s.Directory, key)
}

// named says which of several models failed.
func named(name string, err error) error {
	if name == "" {
		return err
	}
	f := failure.Of(err)
	return failure.New(f.Word, "model %s: %s", failure.Quote(name), strings.TrimPrefix(f.Error(), "["+string(f.Word)+"] "))
}

// flags are the command line.
type flags struct {
	// models are those of --models, and one is the model of the other flags, if there are none.
	models         []modeluri.Argument
	one            modeluri.Argument
	mirrors        guard.Rules
	maxFiles       int
	maxRatio       int64
	terminationLog string
	progressEvery  time.Duration
	connectFor     time.Duration
	retryFor       time.Duration
	connections    int
}

// parse reads the command line. The termination log is known even where the rest is wrong.
func parse(args []string) (flags, error) {
	var f flags
	set := flag.NewFlagSet("fetch-model", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&f.terminationLog, "termination-log", "/dev/termination-log", "the file that the last word goes into; empty is none")
	set.StringVar(&f.one.URI, "uri", "", "spec.model.uri")
	set.StringVar(&f.one.SHA256, "sha256", "", "spec.model.sha256")
	set.StringVar(&f.one.Volume, "volume", "", "the directory that the volume is mounted at")
	set.StringVar(&f.one.Directory, "directory", "", "the name of the model's directory in the volume")
	set.Int64Var(&f.one.SizeLimit, "size-limit", 0, "how many bytes of the volume the fetch may need")
	var mirrors []string
	list(set, "mirror", "PREFIX=REPLACEMENT for the beginning of URLs; may be repeated", &mirrors)
	list(set, "include", "a pattern for the files of hf:// and of a folder of s3:// that are fetched, as hf download has; may be repeated", &f.one.Include)
	list(set, "exclude", "a pattern for those that are not; may be repeated", &f.one.Exclude)
	set.BoolVar(&f.one.Shared, "shared", false, "other pods fetch the same model into the same volume")
	set.IntVar(&f.maxFiles, "max-files", 100_000, "how many files a model may have")
	set.Int64Var(&f.maxRatio, "max-ratio", 1000, "how many times its size an archive may become beyond 100 MiB")
	set.DurationVar(&f.progressEvery, "progress-every", 10*time.Second, "how often the progress is logged")
	set.DurationVar(&f.connectFor, "connect-for", 10*time.Second, "how long attempts may find no server that can serve, until the first byte of the model comes")
	set.DurationVar(&f.retryFor, "retry-for", 30*time.Minute, "how long attempts may bring no new byte")
	set.IntVar(&f.connections, "connections", 8, "how many connections fetch files and parts of files at once")
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
		f.mirrors = append(f.mirrors, rule)
	}
	return f, f.check(set.NArg())
}

// list adds a flag that may be repeated.
func list(set *flag.FlagSet, name, usage string, to *[]string) {
	set.Func(name, usage, func(text string) error {
		*to = append(*to, text)
		return nil
	})
}

func (f flags) check(rest int) error {
	switch {
	case rest > 0:
		return failure.New(failure.Invalid, "there are arguments that are no flags: correct the arguments of the container")
	case len(f.models) > 0 && (f.one.URI != "" || f.one.Directory != ""):
		return failure.New(failure.Invalid, "--models is instead of --uri and --directory: remove one of them")
	case f.maxFiles <= 0 || f.maxRatio <= 0 || f.progressEvery <= 0 || f.connectFor <= 0 || f.retryFor <= 0 || f.connections <= 0:
		return failure.New(failure.Invalid, "--max-files, --max-ratio, --progress-every, --connect-for, --retry-for and --connections are more than zero: correct them")
	}
	return checkModels(f.all())
}
