// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// certificates is the serving certificate, kept up to date with its files.
type certificates struct {
	dir         string
	log         logr.Logger
	retry, poll time.Duration
	expiry      prometheus.Gauge

	watcher atomic.Pointer[certwatcher.CertWatcher]
	missing atomic.Pointer[string]
}

const (
	// retryCertificate is how soon files that were missing are looked for again.
	retryCertificate = time.Second
	// pollCertificate is how soon a change is seen that the file system does not
	// tell of. It tells of nearly all: the swap of symbolic links by which a
	// kubelet renews a Secret's volume comes as the removal of what they led to.
	pollCertificate = 10 * time.Second
)

// keep loads the certificate, and again whenever its files change, until ctx is
// done. Files that are missing at first are waited for. A new pair that cannot be
// used is logged, and the one in use stays.
func (c *certificates) keep(ctx context.Context) {
	for {
		err := c.watch(ctx)
		if ctx.Err() != nil {
			return
		}
		c.report(err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(c.retry):
		}
	}
}

func (c *certificates) watch(ctx context.Context) error {
	watcher, err := certwatcher.New(filepath.Join(c.dir, "tls.crt"), filepath.Join(c.dir, "tls.key"))
	if err != nil {
		return fmt.Errorf("loading the serving certificate: %w", err)
	}
	watcher.RegisterCallback(func(pair tls.Certificate) { c.expiry.Set(float64(pair.Leaf.NotAfter.Unix())) })
	c.watcher.Store(watcher)
	c.log.Info("Certificate loaded", "dir", c.dir)
	if err := watcher.WithWatchInterval(c.poll).Start(ctx); err != nil {
		return fmt.Errorf("watching the serving certificate: %w", err)
	}
	return nil
}

// report logs why there is no certificate, once for each reason.
func (c *certificates) report(err error) {
	if err == nil {
		return
	}
	text := err.Error()
	if last := c.missing.Swap(&text); last == nil || *last != text {
		c.log.Info("Waiting for the certificate", "dir", c.dir, "reason", text)
	}
}

// get is for tls.Config.
func (c *certificates) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if watcher := c.watcher.Load(); watcher != nil {
		return watcher.GetCertificate(hello)
	}
	return nil, errors.New("no certificate has been loaded yet")
}

// loaded says why there is no certificate, nil if there is one.
func (c *certificates) loaded() error {
	if c.watcher.Load() != nil {
		return nil
	}
	if reason := c.missing.Load(); reason != nil {
		return errors.New(*reason)
	}
	return errors.New("no certificate has been loaded yet")
}
