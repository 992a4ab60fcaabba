// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package sizesfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// The last valid file is in use, and the metric says whether it is the one that is there.
func TestFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sizes.yaml")
	registry, gauge := prometheus.NewRegistry(), prometheus.NewGauge(prometheus.GaugeOpts{Name: "invalid", Help: "invalid"})
	registry.MustRegister(gauge)
	file := &File{path: path, invalid: gauge}
	check := func(step string, sizes int, invalid float64) {
		t.Helper()
		file.read()
		families, err := registry.Gather()
		if err != nil || len(families) != 1 {
			t.Fatal(families, err)
		}
		is := families[0].GetMetric()[0].GetGauge().GetValue()
		if got := len(file.Get()); got != sizes || is != invalid {
			t.Errorf("%s: %d sizes and invalid %v, want %d and %v", step, got, is, sizes, invalid)
		}
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check("no file", 0, 0)
	write("sizes: {a: {}, b: {}}")
	check("a file", 2, 0)
	write("sizes: {a: {wrong: 1}}")
	check("an invalid file", 2, 1)
	check("the same again", 2, 1)
	write("sizes: {c: {}}")
	check("a corrected file", 1, 0)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	check("no file any more", 0, 0)
}

// An invalid file at the start leaves the built-in sizes, and no file is none.
func TestFileAtTheStart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sizes.yaml")
	if err := os.WriteFile(path, []byte("sizes: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, ""} {
		if file := New(path); file.Get() != nil {
			t.Errorf("%q: %d sizes", path, len(file.Get()))
		}
	}
}
