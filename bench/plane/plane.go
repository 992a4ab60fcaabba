// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plane runs the control plane that contestants are measured on: a
// kube-apiserver and an etcd of their own, with nothing in it but what a
// contestant needs, and with eyes on what each asks of it and what that costs.
package plane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/modelbox-operator/modelbox-operator/api"
)

// Plane is a running control plane: etcd and kube-apiserver, no controllers.
type Plane struct {
	// Config is an administrator's, without a limit of its own; Client is a client
	// of it without a cache.
	Config *rest.Config
	Client client.WithWatch
	// Dir is for files of whoever runs on the plane; it goes with the plane.
	Dir string
	// Server is the processes whose cost is counted: kube-apiserver and etcd.
	Server Processes

	env *envtest.Environment
}

// Options say what is in a plane from the start.
type Options struct {
	// CRDs are files or directories of CustomResourceDefinitions.
	CRDs []string
	// Webhooks are directories of webhook configurations, which are made to call a
	// local port; none means that admission calls nobody.
	Webhooks []string
}

// Root is the root of the repository.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// OperatorCRDs is the directory of the operator's own CRDs.
func OperatorCRDs() string { return filepath.Join(Root(), "config", "crd", "bases") }

// Scheme holds Kubernetes' own kinds, CRDs and the operator's.
func Scheme() (*apiruntime.Scheme, error) {
	scheme := apiruntime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, api.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// Start starts a plane on a fresh etcd and waits until it has come to rest: what
// an API server does after its start and after a new CRD (it builds and merges
// OpenAPI documents) takes seconds of CPU that are nobody's.
func Start(ctx context.Context, o Options) (*Plane, error) {
	dir, err := os.MkdirTemp("", "modelbox-bench")
	if err != nil {
		return nil, err
	}
	p := &Plane{Dir: dir, env: &envtest.Environment{
		CRDDirectoryPaths:        o.CRDs,
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: 2 * time.Minute,
	}}
	p.env.WebhookInstallOptions.Paths = o.Webhooks
	p.env.ControlPlane.GetAPIServer().Configure().
		// envtest's own range has room for 254 Services.
		Set("service-cluster-ip-range", "10.96.0.0/12")
	if p.Config, err = p.env.Start(); err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	if err := p.connect(); err != nil {
		_ = p.Stop()
		return nil, err
	}
	if err := p.Rest(ctx); err != nil {
		_ = p.Stop()
		return nil, err
	}
	return p, nil
}

func (p *Plane) connect() error {
	p.Config.QPS = -1
	scheme, err := Scheme()
	if err != nil {
		return err
	}
	if p.Client, err = client.NewWithWatch(p.Config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	p.Server, err = children("kube-apiserver", "etcd")
	return err
}

// Rest waits until API server and etcd use less than a twentieth of a CPU, or for
// half a minute: on a machine that others use too, an answer is better than none.
func (p *Plane) Rest(ctx context.Context) error {
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

// Webhooks is where the webhook configurations call, if there are any.
func (p *Plane) Webhooks() *envtest.WebhookInstallOptions { return &p.env.WebhookInstallOptions }

// Stop ends the plane and removes what it wrote.
func (p *Plane) Stop() error {
	if err := p.env.Stop(); err != nil {
		return fmt.Errorf("stopping the control plane: %w", err)
	}
	return os.RemoveAll(p.Dir)
}

// Pause waits, unless ctx ends before.
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

// Poll calls check every interval until it says done, errs, or within has passed.
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
