// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/modelbox-operator/modelbox-operator/webhook/server"
)

// mostConnections bounds the connections of the metrics and those of the probes. The manager's
// own servers of both have no such bound: a client that opens thousands of connections, and
// that no network policy keeps out, would take the memory of the process.
const mostConnections = 128

// metricsOptions are the flags of the metrics. They are named as in the projects that
// Kubebuilder generates, --metrics-client-ca excepted.
type metricsOptions struct {
	address             string
	secure              bool
	certPath, cert, key string
	clientCA            string
}

// validate returns an error for flags that would have no effect.
func (o *metricsOptions) validate() error {
	if o.secure && o.certPath == "" {
		return errors.New("--metrics-secure needs --metrics-cert-path, the directory of the certificate")
	}
	if !o.secure && (o.certPath != "" || o.clientCA != "") {
		return errors.New("--metrics-cert-path and --metrics-client-ca need --metrics-secure")
	}
	return nil
}

// addMetrics adds the server of the metrics to a manager.
func addMetrics(mgr manager.Manager, o *metricsOptions, version server.TLSVersion) error {
	if err := o.validate(); err != nil {
		return err
	}
	handler := promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
	e, err := listen("metrics", o.address, map[string]http.Handler{"/metrics": handler})
	if err != nil || e == nil {
		return err
	}
	if o.secure {
		if err := secure(mgr, e, o, version); err != nil {
			return err
		}
	}
	return mgr.Add(e)
}

// secure makes the server of the metrics use TLS.
func secure(mgr manager.Manager, e *manager.Server, o *metricsOptions, version server.TLSVersion) error {
	watcher, err := certwatcher.New(filepath.Join(o.certPath, o.cert), filepath.Join(o.certPath, o.key))
	if err != nil {
		return fmt.Errorf("loading the certificate for the metrics: %w", err)
	}
	config := &tls.Config{GetCertificate: watcher.GetCertificate}
	version.Configure(config)
	if o.clientCA != "" {
		ca, err := server.NewClientCA(o.clientCA, nil)
		if err != nil {
			return err
		}
		ca.Configure(config)
		if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { ca.Run(ctx); return nil })); err != nil {
			return err
		}
	}
	e.Listener = tls.NewListener(e.Listener, config)
	return mgr.Add(watcher)
}

// addProbes adds the server of the probes to a manager.
func addProbes(mgr manager.Manager, address string, webhooks *server.Server) error {
	e, err := listen("health", address, map[string]http.Handler{
		"/healthz": healthz.CheckHandler{Checker: webhooks.Healthy},
		"/readyz":  healthz.CheckHandler{Checker: webhooks.Ready},
	})
	if err != nil || e == nil {
		return err
	}
	return mgr.Add(e)
}

// listen returns a server that listens on an address, nil if that is 0. The manager ends such
// a server after the one of the webhooks.
func listen(name, address string, handlers map[string]http.Handler) (*manager.Server, error) {
	if address == "0" {
		return nil, nil
	}
	raw, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for %s: %w", name, err)
	}
	mux := http.NewServeMux()
	for path, handler := range handlers {
		mux.Handle(path, handler)
	}
	return &manager.Server{
		Name: name, Listener: server.LimitListener(raw, name, mostConnections), ShutdownTimeout: new(time.Second),
		Server: &http.Server{
			// What port scans leave behind would fill the log.
			ErrorLog: log.New(io.Discard, "", 0),
			Handler:  mux, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		},
	}, nil
}
