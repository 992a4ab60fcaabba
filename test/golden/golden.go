// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package golden compares what becomes of an object with what is written down.
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

var update = flag.Bool("update", false, "write the golden files anew")

// Run reads each testdata/NAME.yaml strictly into a T, and holds what becomes of
// it against testdata/NAME.golden.yaml.
func Run[T any](t *testing.T, become func(*T) ([]any, error)) {
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
		t.Run(filepath.Base(name), func(t *testing.T) { compare(t, input, name+".golden.yaml", become) })
	}
	if ran == 0 {
		t.Fatal("testdata holds no input")
	}
}

func compare[T any](t *testing.T, input, want string, become func(*T) ([]any, error)) {
	t.Helper()
	got, err := render(input, become)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(want, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	expected, err := os.ReadFile(want)
	if err != nil {
		t.Fatalf("%v: run 'go test ./controller/... -update' and read what it wrote", err)
	}
	if diff := cmp.Diff(string(expected), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", want, diff)
	}
}

func render[T any](input string, become func(*T) ([]any, error)) ([]byte, error) {
	manifest, err := os.ReadFile(input)
	if err != nil {
		return nil, err
	}
	var obj T
	if err := yaml.UnmarshalStrict(manifest, &obj); err != nil {
		return nil, err
	}
	objects, err := become(&obj)
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
