// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestReadReturnsWhatWriteWrote(t *testing.T) {
	r := &Report{Options: map[string]string{"growth": "100,300"}}
	r.Record("growth", "ours", "own CPU per object, 100", "ms", 4.25)
	r.Record("growth", "ours", "own CPU per object, 100", "ms", 4.5)
	r.Add(Row{Group: "growth", Name: "own CPU per object, 300 / 100: ours", NoBudget: true, Values: []float64{1.5}})
	path := filepath.Join(t.TempDir(), "results.json")
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, r) {
		t.Errorf("read %+v, wrote %+v", got, r)
	}
}

func TestReadRefusesOtherFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.json")
	if err := os.WriteFile(path, []byte("<svg/>"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
}
