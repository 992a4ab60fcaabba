// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package sizesfile

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The file is read again when it changes, the last valid one is in use, and the metric says whether it is the one that is there.
func TestFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sizes.yaml")
	synctest.Test(t, func(t *testing.T) {
		registry, gauge := prometheus.NewRegistry(), prometheus.NewGauge(prometheus.GaugeOpts{Name: "invalid", Help: "invalid"})
		registry.MustRegister(gauge)
		file := &File{path: path, invalid: gauge}
		go func() { _ = file.Start(t.Context()) }()
		check := func(text string, sizes int, invalid float64) {
			t.Helper()
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if text == "" {
				_ = os.Remove(path)
			}
			time.Sleep(period)
			synctest.Wait()
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			if got, is := len(file.Get()), families[0].GetMetric()[0].GetGauge().GetValue(); got != sizes || is != invalid {
				t.Errorf("%q: %d sizes and invalid %v, want %d and %v", text, got, is, sizes, invalid)
			}
		}
		check("", 0, 0)
		check("sizes: {a: {}, b: {}}", 2, 0)
		check("sizes: {a: {wrong: 1}}", 2, 1)
		check("sizes: {a: {wrong: 1}}", 2, 1)
		check("sizes: {c: {}}", 1, 0)
		check("", 0, 0)
	})
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
