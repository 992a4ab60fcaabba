// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package golden compares the results of a function with golden files.
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files again")

// Run decodes each testdata/NAME.yaml strictly into a T, and compares the objects that
// build returns for it with testdata/NAME.golden.yaml.
func Run[T, O any](t *testing.T, build func(*T) ([]O, error)) {
	t.Helper()
	inputs, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, input := range inputs {
		name := strings.TrimSuffix(input, ".yaml")
		if strings.HasSuffix(name, ".golden") {
			continue
		}
		ran++
		t.Run(filepath.Base(name), func(t *testing.T) { compare(t, input, name+".golden.yaml", build) })
	}
	if ran == 0 {
		t.Fatal("testdata has no input files")
	}
}

func compare[T, O any](t *testing.T, input, want string, build func(*T) ([]O, error)) {
	t.Helper()
	got, err := render(input, build)
	if err != nil {
		t.Fatal(err)
	}
	Equal(t, want, got)
}

// Equal compares a text with that of a file, or writes the file if the tests run with -update.
func Equal(t *testing.T, want string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(want, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	expected, err := os.ReadFile(want)
	if err != nil {
		t.Fatalf("%v: run this test with -update, and check the files that it wrote", err)
	}
	if diff := cmp.Diff(string(expected), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", want, diff)
	}
}

func render[T, O any](input string, build func(*T) ([]O, error)) ([]byte, error) {
	manifest, err := os.ReadFile(input)
	if err != nil {
		return nil, err
	}
	var obj T
	if err := yaml.UnmarshalStrict(manifest, &obj); err != nil {
		return nil, err
	}
	objects, err := build(&obj)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, object := range objects {
		document, err := yaml.Marshal(object)
		if err != nil {
			return nil, err
		}
		out.WriteString("---\n")
		out.Write(document)
	}
	return out.Bytes(), nil
}
