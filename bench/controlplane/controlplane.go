// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs the control plane that an implementation is measured on: a
// separate kube-apiserver and etcd, with only the objects that the implementation needs.
// It counts the requests of the implementation and their CPU time.
package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// ControlPlane is a running control controlPlane: etcd and kube-apiserver, no controllers.
type ControlPlane struct {
	// Config has an administrator's credentials and no client-side rate limit. Client
	// uses it, without a cache.
	Config *rest.Config
	Client client.WithWatch
	// Dir is for files of the processes that use the control plane. Stop deletes it.
	Dir string
	// Server is the processes whose CPU time is counted: kube-apiserver and etcd.
	Server Processes

	env *envtest.Environment
}

// Options define what a control plane contains at its start.
type Options struct {
	// CRDs are files or directories of CustomResourceDefinitions.
	CRDs []string
	// Webhooks are directories of webhook configurations, which are changed to call a
	// local port. Without them, admission calls no webhook.
	Webhooks []string
}

// OperatorCRDs returns the directory of the operator's CRDs.
func OperatorCRDs() string { return filepath.Join(testenv.Root(), "config", "crd", "bases") }

// Start starts a control plane with an empty etcd and waits until it is idle: after its
// start and after a new CRD, the API server builds and merges OpenAPI documents, which
// takes seconds of CPU time that no implementation causes.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	dir, err := os.MkdirTemp("", "modelbox-bench")
	if err != nil {
		return nil, err
	}
	p := &ControlPlane{Dir: dir, env: &envtest.Environment{
		CRDDirectoryPaths:        o.CRDs,
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: 2 * time.Minute,
	}}
	p.env.WebhookInstallOptions.Paths = o.Webhooks
	p.env.ControlPlane.GetAPIServer().Configure().
		// envtest's own range has room for 254 Services.
		Set("service-cluster-ip-range", "10.96.0.0/12")
	if p.Config, err = p.env.Start(); err != nil {
		return nil, fmt.Errorf("starting the control controlPlane: %w", err)
	}
	if err := p.connect(); err != nil {
		_ = p.Stop()
		return nil, err
	}
	if err := p.WaitIdle(ctx); err != nil {
		_ = p.Stop()
		return nil, err
	}
	return p, nil
}

func (p *ControlPlane) connect() error {
	p.Config.QPS = -1
	scheme, err := testenv.Scheme()
	if err != nil {
		return err
	}
	if p.Client, err = client.NewWithWatch(p.Config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	p.Server, err = children("kube-apiserver", "etcd")
	return err
}

// WaitIdle waits until the API server and etcd use less than 50 ms of CPU time in a
// second, but for at most 30 seconds: on a busy machine an inexact result is better than
// none.
func (p *ControlPlane) WaitIdle(ctx context.Context) error {
	const quiet, interval = 50 * time.Millisecond, time.Second
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		before, err := p.Server.CPU()
		if err != nil {
			return err
		}
		if err := Pause(ctx, interval); err != nil {
			return err
		}
		after, err := p.Server.CPU()
		if err != nil || after-before < quiet {
			return err
		}
	}
	return nil
}

// Webhooks returns the address and certificates for the webhook configurations.
func (p *ControlPlane) Webhooks() *envtest.WebhookInstallOptions { return &p.env.WebhookInstallOptions }

// Stop stops the control plane and deletes its files.
func (p *ControlPlane) Stop() error {
	if err := p.env.Stop(); err != nil {
		return fmt.Errorf("stopping the control controlPlane: %w", err)
	}
	return os.RemoveAll(p.Dir)
}

// Pause waits for d, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// Poll calls check every interval until it is done, returns an error, or the time within
// has passed.
func Poll(ctx context.Context, interval, within time.Duration, what string, check func() (done bool, err error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("%s: not within %s", what, within))
	defer cancel()
	for {
		done, err := check()
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if done {
			return nil
		}
		if err := Pause(ctx, interval); err != nil {
			return err
		}
	}
}
