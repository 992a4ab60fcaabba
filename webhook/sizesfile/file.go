// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sizesfile keeps the sizes of the cluster, from a file that is read again when it changes.
package sizesfile

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/kinds/sizes"
)

// period is how often the file of the sizes is read. The kubelet updates the file of a ConfigMap
// about once a minute.
const period = 5 * time.Second

// File has the sizes of the last valid file, none before there was one. It is a manager.Runnable.
type File struct {
	path    string
	invalid prometheus.Gauge

	lock    sync.Mutex
	text    []byte // What was read last.
	current modelbox.Sizes
}

// invalid is the metric of the process.
var invalid = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "modelbox_webhook_sizes_invalid", Help: "1 if the file of --sizes-file is invalid, so that the last valid one is in use.",
})

func init() { metrics.Registry.MustRegister(invalid) }

// New returns the sizes of a file, which may be absent. An empty path is no file.
func New(path string) *File {
	f := &File{path: path, invalid: invalid}
	f.read()
	return f
}

// Get returns the sizes. It is safe for concurrent use.
func (f *File) Get() modelbox.Sizes {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.current
}

// Start reads the file when it changes, until ctx is done.
func (f *File) Start(ctx context.Context) error {
	for ticker := time.NewTicker(period); ; {
		select {
		case <-ctx.Done():
			ticker.Stop()
			return nil
		case <-ticker.C:
			f.read()
		}
	}
}

// read reads the file. Without one, the cluster has only the built-in sizes.
func (f *File) read() {
	if f.path == "" {
		return
	}
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = []byte{}, nil
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	if err == nil && f.text != nil && bytes.Equal(text, f.text) {
		return
	}
	if err != nil {
		f.invalid.Set(1)
		log.Log.Error(err, "Cannot read the sizes; the last ones stay in use")
		return
	}
	f.text = text
	parsed, errs := sizes.Parse(text)
	if len(errs) > 0 {
		f.invalid.Set(1)
		log.Log.Error(errors.New(rules.FormatErrors(errs)), "The sizes are invalid; the last ones stay in use", "file", f.path)
		return
	}
	f.invalid.Set(0)
	f.current = parsed
	log.Log.Info("Using sizes", "file", f.path, "sizes", len(parsed))
}
