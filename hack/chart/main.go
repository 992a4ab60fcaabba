// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command chart writes the Helm chart from the kustomizations in config/, the only source of
// its objects:
//
//	go run ./hack/chart [-webhook NAME@DIGEST -controller NAME@DIGEST] charts/modelbox-operator
//
// With the images of a release, the defaults of the chart are these, by digest.
//
// It has no objects of its own. The table in changes.go says which of their fields are values
// of the chart, and the defaults of these values are what the fields have in config/.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags, images := flag.NewFlagSet("chart", flag.ContinueOnError), map[string]*string{}
	for _, process := range processes {
		images[process] = flags.String(process, "", "the image of the "+process+", as NAME@DIGEST")
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("one folder is expected, that of the chart")
	}
	source, err := read("config")
	if err != nil {
		return err
	}
	version, err := os.ReadFile("internal/version/VERSION")
	if err != nil {
		return err
	}
	of := release{version: strings.TrimSpace(string(version)), images: map[string]image{}}
	for process, reference := range images {
		if of.images[process], err = parseImage(*reference); err != nil {
			return fmt.Errorf("-%s: %w", process, err)
		}
	}
	files, err := chart(source, of)
	if err != nil {
		return err
	}
	return write(flags.Arg(0), files)
}

// write replaces the files in a folder.
func write(folder string, files map[string]string) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	for name, text := range files {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
