// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command webhook sets the defaults of every object of the ModelBox Operator's kinds,
// and refuses what cannot work before it is stored.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/modelbox-operator/modelbox-operator/internal/tracing"
	"github.com/modelbox-operator/modelbox-operator/internal/version"
	"github.com/modelbox-operator/modelbox-operator/webhook/server"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "webhook:", err)
		os.Exit(1)
	}
}

func run() error {
	o := options{server: server.DefaultOptions()}
	o.bind(flag.CommandLine)
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	if o.version {
		fmt.Println(version.Version)
		return nil
	}
	log.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
	log.Log.Info("Starting", "version", version.Version)
	metrics.Registry.MustRegister(version.Collector("webhook"))
	return serve(signals.SetupSignalHandler(), &o)
}

// options are the flags of the process.
type options struct {
	version                    bool
	metrics                    metricsOptions
	probeAddress, pprofAddress string
	server                     server.Options
	tracing                    tracing.Options
}

func (o *options) bind(flags *flag.FlagSet) {
	flags.BoolVar(&o.version, "version", false, "print the version and exit")
	flags.StringVar(&o.metrics.address, "metrics-bind-address", ":8080", "address that /metrics is served on; 0 turns it off")
	flags.BoolVar(&o.metrics.secure, "metrics-secure", false, "serve /metrics by TLS; it needs --metrics-cert-path")
	flags.StringVar(&o.metrics.certPath, "metrics-cert-path", "", "directory of the certificate for /metrics, read again when it changes")
	flags.StringVar(&o.metrics.cert, "metrics-cert-name", "tls.crt", "name of the certificate's file")
	flags.StringVar(&o.metrics.key, "metrics-cert-key", "tls.key", "name of the key's file")
	flags.StringVar(&o.metrics.clientCA, "metrics-client-ca", "", "file of CA certificates; if set, a client of /metrics must have a certificate of one of them")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "address that /healthz and /readyz are served on; 0 turns them off")
	flags.StringVar(&o.pprofAddress, "pprof-bind-address", "0", "address that /debug/pprof is served on; 0 turns it off")
	flags.StringVar(&o.server.Addr, "webhook-bind-address", o.server.Addr, "address that the webhooks are served on")
	flags.StringVar(&o.server.CertDir, "cert-dir", "/etc/modelbox-webhook/tls", "directory of tls.crt and tls.key, read again when they change")
	flags.Var(&o.server.MinTLSVersion, "tls-min-version", "lowest version of TLS that clients may speak: 1.2 or 1.3")
	flags.StringVar(&o.server.ClientCA, "client-ca", "", "file of CA certificates; if set, a client of the webhooks must have a certificate of one of them")
	flags.Func("client-name", "common names of the client certificates that --client-ca accepts, separated by commas; all by default", func(names string) error {
		o.server.ClientNames = strings.Split(names, ",")
		return nil
	})
	flags.IntVar(&o.server.MaxConnections, "max-connections", o.server.MaxConnections, "how many connections the webhooks may have; one more takes the place of another")
	flags.IntVar(&o.server.MaxInFlight, "max-requests-in-flight", o.server.MaxInFlight, "how many requests are worked on at once; one more is answered 503 with Retry-After")
	flags.DurationVar(&o.server.Drain, "drain", o.server.Drain, "how long to serve on while unready, until the endpoints have moved")
	flags.DurationVar(&o.server.Linger, "linger", o.server.Linger, "how long after that to wait for kept connections to close")
	flags.DurationVar(&o.server.Grace, "grace", o.server.Grace, "how long at the end to wait for requests in flight")
	o.tracing.AddFlags(flags)
}

// serve serves the webhooks, the metrics and the probes until ctx is done.
func serve(ctx context.Context, o *options) error {
	provider, err := o.tracing.Start("modelbox-webhook")
	if err != nil {
		return err
	}
	defer provider.Stop()
	mgr, err := newManager(o)
	if err != nil {
		return err
	}
	register(traced(mgr, provider).GetWebhookServer())
	return mgr.Start(ctx)
}

// newManager returns a manager of the servers. This process sends no request to an API
// server: its manager has no address of one, and there is no flag for a kubeconfig.
func newManager(o *options) (manager.Manager, error) {
	if o.server.ClientCA == "" && len(o.server.ClientNames) > 0 {
		return nil, errors.New("--client-name needs --client-ca")
	}
	webhooks := server.New(o.server)
	shutdown := o.server.Drain + o.server.Linger + o.server.Grace + time.Second
	mgr, err := manager.New(&rest.Config{}, manager.Options{
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		PprofBindAddress:        o.pprofAddress,
		WebhookServer:           webhooks,
		GracefulShutdownTimeout: &shutdown,
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	if err := addMetrics(mgr, &o.metrics, o.server.MinTLSVersion); err != nil {
		return nil, err
	}
	return mgr, addProbes(mgr, o.probeAddress, webhooks)
}
