// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

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
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// certificate is the serving certificate. A CertWatcher of controller-runtime reads
// its files again when they change; certificate adds the wait for files that are
// missing at first.
type certificate struct {
	dir         string
	log         logr.Logger
	retry, poll time.Duration
	expiry      prometheus.Gauge

	watcher atomic.Pointer[certwatcher.CertWatcher]
	missing atomic.Pointer[string]
}

const (
	// retryCertificate is the interval at which missing files are looked for.
	retryCertificate = time.Second
	// pollCertificate is the interval at which the files are read without a file
	// system event. The update of a Secret's volume does cause one.
	pollCertificate = 10 * time.Second
)

// run watches the certificate until ctx is done. A new pair that cannot be used is
// logged, and the one in use stays.
func (c *certificate) run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) { c.report(c.watch(ctx)) }, c.retry)
}

func (c *certificate) watch(ctx context.Context) error {
	watcher, err := certwatcher.New(filepath.Join(c.dir, "tls.crt"), filepath.Join(c.dir, "tls.key"))
	if err != nil {
		return fmt.Errorf("loading the serving certificate: %w", err)
	}
	watcher.RegisterCallback(func(pair tls.Certificate) { c.expiry.Set(float64(pair.Leaf.NotAfter.Unix())) })
	c.watcher.Store(watcher)
	c.log.Info("Certificate loaded", "dir", c.dir)
	return watcher.WithWatchInterval(c.poll).Start(ctx)
}

// report logs why there is no certificate, once for each reason.
func (c *certificate) report(err error) {
	if err == nil {
		return
	}
	reason := err.Error()
	if last := c.missing.Swap(&reason); last == nil || *last != reason {
		c.log.Info("Waiting for the certificate", "dir", c.dir, "reason", reason)
	}
}

// get is the GetCertificate of a tls.Config.
func (c *certificate) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if err := c.loaded(); err != nil {
		return nil, err
	}
	return c.watcher.Load().GetCertificate(hello)
}

// loaded returns why there is no certificate, nil if there is one.
func (c *certificate) loaded() error {
	if c.watcher.Load() != nil {
		return nil
	}
	if reason := c.missing.Load(); reason != nil {
		return errors.New(*reason)
	}
	return errors.New("no certificate has been loaded yet")
}
