// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command controller makes the cluster match the objects of the ModelBox
// Operator's kinds, and tells in their status what it sees.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/controller/app"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/decode"
	"github.com/modelbox-operator/modelbox-operator/controller/eru"
	"github.com/modelbox-operator/modelbox-operator/controller/genericdaemon"
	"github.com/modelbox-operator/modelbox-operator/controller/modelbox"
	"github.com/modelbox-operator/modelbox-operator/controller/uniteddeployment"
	"github.com/modelbox-operator/modelbox-operator/version"
)

// kinds are the controllers that this process runs, one for each kind.
var kinds = []func(manager.Manager, clock.PassiveClock) error{
	modelbox.SetupWithManager,
	app.SetupWithManager,
	genericdaemon.SetupWithManager,
	uniteddeployment.SetupWithManager,
	eru.SetupWithManager,
}

// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=modelbox-system,resources=leases,verbs=get;create;update

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "controller:", err)
		os.Exit(1)
	}
}

func run() error {
	var o options
	o.bind(flag.CommandLine)
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	if o.version {
		fmt.Println(version.Version)
		return nil
	}
	ctrl.SetLogger(late(zap.New(zap.UseFlagOptions(&logging))))
	ctrl.Log.Info("Starting", "version", version.Version)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	metrics.Registry.MustRegister(version.Collector("controller"))

	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	managerOptions, err := o.manager(cfg)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, managerOptions)
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	recordElections(managerOptions.LeaderElectionResourceLockInterface, mgr)
	if err := setup(mgr); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// garbage is how much may pile up between two collections, as a percentage of what
// lives (GOGC). What lives is little here, and what each event leaves is much in
// comparison. The memory limit (GOMEMLIMIT) holds all the same.
const garbage = 200

// defaultReconcileTimeout bounds one attempt to reconcile an object. A worker waits for
// answers, and until the cache shows what it wrote itself; without a bound, a watch that
// is silent for ever would stop it for ever, and eight such objects all of their kind.
// The longest attempt is seven requests one after the other (a child that changes for
// the first time is read, taken over and applied; a second child; status). At 5.5 s
// each, with which the leader still keeps its lease, that is 40 s; and a single request
// is ended by the API server after a minute. Two minutes are longer than both.
const defaultReconcileTimeout = 2 * time.Minute

// options are the flags of the process.
type options struct {
	version                                    bool
	metricsAddress, probeAddress, pprofAddress string
	leaderElect                                bool
	leaderNamespace                            string
	leaseDuration, renewDeadline, retryPeriod  time.Duration
	workers                                    int
	reconcileTimeout                           time.Duration
}

func (o *options) bind(flags *flag.FlagSet) {
	flags.BoolVar(&o.version, "version", false, "print the version and exit")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "address that /metrics is served on; 0 turns it off")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "address that /healthz and /readyz are served on; 0 turns them off")
	flags.StringVar(&o.pprofAddress, "pprof-bind-address", "0", "address that /debug/pprof is served on; 0 turns it off")
	flags.BoolVar(&o.leaderElect, "leader-elect", true, "act only while holding the lease, so that several replicas may run")
	flags.StringVar(&o.leaderNamespace, "leader-election-namespace", "", "namespace of the lease; the pod's own if empty")
	flags.DurationVar(&o.leaseDuration, "leader-election-lease-duration", defaultLeaseDuration, "how long another replica waits for a silent leader; whole seconds, and more than the renew deadline")
	flags.DurationVar(&o.renewDeadline, "leader-election-renew-deadline", defaultRenewDeadline, "how long the leader tries to renew before it gives up and exits; a single request may take 11/12 of it")
	flags.DurationVar(&o.retryPeriod, "leader-election-retry-period", defaultRetryPeriod, "how long to wait between two attempts at the lease; those of other replicas take up to 2.2 times as long")
	flags.IntVar(&o.workers, "workers", 8, "how many objects of one kind are worked on at once")
	flags.DurationVar(&o.reconcileTimeout, "reconcile-timeout", defaultReconcileTimeout, "how long one attempt to reconcile an object may take before it is ended and tried again")
}

// tune sets how the process talks to the API server.
func tune(cfg *rest.Config) {
	// The workers bound how much is asked of the API server at once, and its
	// priority and fairness shares it out; a second limit here would only hide
	// which of the two is too low.
	cfg.QPS = -1
	// As Kubernetes' own controllers do it: within a cluster the bytes are cheap, and
	// it is the API server that would pay for making them fewer.
	cfg.DisableCompression = true
	cfg.UserAgent = "modelbox-controller/" + version.Version
}

// manager are the options of the manager: a client that sees its own writes in
// the cache, and a cache that holds no more than the controllers read. It tunes cfg.
func (o *options) manager(cfg *rest.Config) (ctrl.Options, error) {
	tune(cfg)
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(api.AddToScheme(scheme))
	connections, err := rest.HTTPClientFor(cfg) // The manager's own, as of one configuration there is one.
	if err != nil {
		return ctrl.Options{}, fmt.Errorf("connecting to the API server: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(cfg, connections)
	if err != nil {
		return ctrl.Options{}, fmt.Errorf("asking for the kinds of the API server: %w", err)
	}
	options := ctrl.Options{
		Scheme:         scheme,
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
		Cache: cache.Options{
			DefaultTransform: apply.Trim,
			NewInformer:      decode.Informers(cfg, connections, scheme, mapper),
		},
		Client:                        client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        o.probeAddress,
		PprofBindAddress:              o.pprofAddress,
		WebhookServer:                 webhook.NewServer(webhook.Options{Port: -1}),
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              electionID, // The lock has its own; this one names the metric.
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &o.leaseDuration,
		RenewDeadline:                 &o.renewDeadline,
		RetryPeriod:                   &o.retryPeriod,
		Controller: config.Controller{
			MaxConcurrentReconciles: o.workers,
			EnableWarmup:            new(true),
			ReconciliationTimeout:   o.reconcileTimeout,
		},
	}
	if o.leaderElect {
		options.LeaderElectionResourceLockInterface, err = o.lease(cfg)
	}
	return options, err
}

// setup adds to a manager what this process does.
func setup(mgr manager.Manager) error {
	for _, add := range kinds {
		if err := add(mgr, clock.RealClock{}); err != nil {
			return fmt.Errorf("adding a controller: %w", err)
		}
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("caches", synced(mgr.GetCache()))
}

// synced is a healthz.Checker: nil when the caches are filled, so that a rollout
// goes on only when the new pod could act. Without a CRD, or without the right to
// read one of the kinds, that is never.
func synced(c cache.Cache) healthz.Checker {
	return func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), patience)
		defer cancel()
		if !c.WaitForCacheSync(ctx) {
			return errors.New("the caches are not filled yet")
		}
		return nil
	}
}

// patience is how long a probe waits for the caches; kubelet waits for a second.
const patience = 500 * time.Millisecond
