// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command webhook gives every object of the ModelBox Operator's kinds its
// defaults, and refuses what cannot work before it is stored.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/version"
	"github.com/modelbox-operator/modelbox-operator/webhook/admit"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "webhook:", err)
		os.Exit(1)
	}
}

func run() error {
	o := options{server: admit.DefaultOptions()}
	o.bind(flag.CommandLine)
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	if o.version {
		fmt.Println(version.Version)
		return nil
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
	ctrl.Log.Info("Starting", "version", version.Version)
	metrics.Registry.MustRegister(version.Collector("webhook"))

	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	mgr, err := ctrl.NewManager(cfg, o.manager())
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	if err := setup(mgr, o.server); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// options are the flags of the process.
type options struct {
	version                                    bool
	metricsAddress, probeAddress, pprofAddress string
	server                                     admit.Options
}

func (o *options) bind(flags *flag.FlagSet) {
	flags.BoolVar(&o.version, "version", false, "print the version and exit")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "address that /metrics is served on; 0 turns it off")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "address that /healthz and /readyz are served on; 0 turns them off")
	flags.StringVar(&o.pprofAddress, "pprof-bind-address", "0", "address that /debug/pprof is served on; 0 turns it off")
	flags.StringVar(&o.server.Addr, "webhook-bind-address", o.server.Addr, "address that the webhooks are served on")
	flags.StringVar(&o.server.CertDir, "cert-dir", "/etc/modelbox-webhook/tls", "directory of tls.crt and tls.key, read again when they change")
	flags.Int64Var(&o.server.MaxInFlight, "max-requests-in-flight", o.server.MaxInFlight, "how many requests are worked on at once; one more is answered 503 with Retry-After")
	flags.DurationVar(&o.server.Drain, "drain", o.server.Drain, "how long to serve on while unready, until the endpoints have moved")
	flags.DurationVar(&o.server.Linger, "linger", o.server.Linger, "how long after that to wait for kept connections to close")
	flags.DurationVar(&o.server.Grace, "grace", o.server.Grace, "how long at the end to wait for requests in flight")
}

func (o *options) manager() ctrl.Options {
	shutdown := o.server.Drain + o.server.Linger + o.server.Grace + time.Second
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(api.AddToScheme(scheme))
	return ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:  o.probeAddress,
		PprofBindAddress:        o.pprofAddress,
		WebhookServer:           ctrlwebhook.NewServer(ctrlwebhook.Options{Port: -1}),
		GracefulShutdownTimeout: &shutdown,
	}
}

// setup adds to a manager what this process does.
func setup(mgr manager.Manager, o admit.Options) error {
	server := admit.NewServer(o)
	for _, register := range kinds {
		register(server, surroundings{reader: mgr.GetAPIReader(), clock: clock.RealClock{}})
	}
	if err := mgr.AddHealthzCheck("webhook", server.Healthy); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("webhook", server.Ready); err != nil {
		return err
	}
	return mgr.Add(server)
}
