// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command webhook sets the defaults of every object of the ModelBox Operator's kinds,
// and refuses what cannot work before it is stored.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/version"
	"github.com/modelbox-operator/modelbox-operator/webhook/app"
	"github.com/modelbox-operator/modelbox-operator/webhook/eru"
	"github.com/modelbox-operator/modelbox-operator/webhook/genericdaemon"
	"github.com/modelbox-operator/modelbox-operator/webhook/modelbox"
	"github.com/modelbox-operator/modelbox-operator/webhook/server"
	"github.com/modelbox-operator/modelbox-operator/webhook/uniteddeployment"
)

// kinds are the webhooks that this process serves, two for each kind.
var kinds = []func(manager.Manager, client.Reader) error{
	modelbox.SetupWebhookWithManager,
	app.SetupWebhookWithManager,
	genericdaemon.SetupWebhookWithManager,
	uniteddeployment.SetupWebhookWithManager,
	eru.SetupWebhookWithManager,
}

// +kubebuilder:webhookconfiguration:mutating=true,name=modelbox-webhook
// +kubebuilder:webhookconfiguration:mutating=false,name=modelbox-webhook

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
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
	ctrl.Log.Info("Starting", "version", version.Version)
	metrics.Registry.MustRegister(version.Collector("webhook"))
	cfg, err := ctrl.GetConfig()
	if err != nil {
		ctrl.Log.Info("Serving without the warnings that depend on other objects: there is no access to the API", "reason", err.Error())
	}
	reader, err := newReader(cfg)
	if err != nil {
		return err
	}
	return serve(ctrl.SetupSignalHandler(), &o, reader)
}

// options are the flags of the process.
type options struct {
	version                                    bool
	metricsAddress, probeAddress, pprofAddress string
	server                                     server.Options
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

// newReader returns a client for the objects that a warning depends on, nil if cfg is
// nil. Nothing else in this process reads the API, so it starts and serves without it,
// and while the API server is away: the client connects when it is used.
func newReader(cfg *rest.Config) (client.Reader, error) {
	if cfg == nil {
		return nil, nil
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(api.AddToScheme(scheme))
	reader, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	return reader, nil
}

// serve serves the webhooks, the metrics and the probes until ctx is done.
func serve(ctx context.Context, o *options, reader client.Reader) error {
	mgr, err := newManager(o)
	if err != nil {
		return err
	}
	if err := setup(mgr, reader); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newManager returns a manager of the servers. Its client is never used, so it needs
// no address of an API server.
func newManager(o *options) (manager.Manager, error) {
	webhooks := server.New(o.server)
	shutdown := o.server.Drain + o.server.Linger + o.server.Grace + time.Second
	mgr, err := manager.New(&rest.Config{}, manager.Options{
		Metrics:                 metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:  o.probeAddress,
		PprofBindAddress:        o.pprofAddress,
		WebhookServer:           webhooks,
		GracefulShutdownTimeout: &shutdown,
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("webhook", webhooks.Healthy); err != nil {
		return nil, err
	}
	return mgr, mgr.AddReadyzCheck("webhook", webhooks.Ready)
}

// setup adds the webhooks of all kinds to a manager.
func setup(mgr manager.Manager, reader client.Reader) error {
	for _, setupKind := range kinds {
		if err := setupKind(mgr, reader); err != nil {
			return err
		}
	}
	return nil
}
