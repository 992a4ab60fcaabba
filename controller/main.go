// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command controller reconciles the objects of the ModelBox Operator's kinds: it brings the
// cluster to the desired state in their spec, and reports the observed state in their status.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/controller/app"
	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/controller/configuration"
	"github.com/modelbox-operator/modelbox-operator/controller/eru"
	"github.com/modelbox-operator/modelbox-operator/controller/genericdaemon"
	"github.com/modelbox-operator/modelbox-operator/controller/limit"
	"github.com/modelbox-operator/modelbox-operator/controller/modelbox"
	"github.com/modelbox-operator/modelbox-operator/controller/schedules"
	"github.com/modelbox-operator/modelbox-operator/controller/uniteddeployment"
	"github.com/modelbox-operator/modelbox-operator/controller/watches"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/internal/version"
	"github.com/modelbox-operator/modelbox-operator/kinds/all"
)

// perKind are the functions that add the controllers of a kind to a manager.
var perKind = map[string]func(manager.Manager, workload.Shared) error{
	"ModelBox":         modelbox.SetupWithManager,
	"App":              app.SetupWithManager,
	"Genericdaemon":    genericdaemon.SetupWithManager,
	"UnitedDeployment": uniteddeployment.SetupWithManager,
	"Eru":              eru.SetupWithManager,
}

// addControllers adds the controllers of the kinds that are served, which may be limited to
// namespaces, to a manager.
func (o *options) addControllers(mgr manager.Manager, clk clock.PassiveClock) error {
	shared := workload.Shared{
		Clock: clk, Fetcher: o.fetcher, Watches: o.watches, IndexAutoscalers: sync.OnceValue(func() error { return schedules.Index(mgr) }),
		Queue: &configuration.RolloutQueue{PerMinute: o.restartRate, Clock: clock.RealClock{}},
	}
	for _, kind := range o.kinds.Of(all.Kinds) {
		if err := perKind[kind.GVK.Kind](mgr, shared); err != nil {
			return fmt.Errorf("adding a controller: %w", err)
		}
	}
	return nil
}

// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=modelbox-system,resources=leases,verbs=get;create;update

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "controller:", err)
		os.Exit(1)
	}
}

func run() error {
	o := options{leftOut: cache.LeftOut{Every: time.Minute}}
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
	metrics.Registry.MustRegister(version.Collector("controller"))

	cfg, err := ctrlconfig.GetConfigWithContext(o.context)
	if err != nil {
		return fmt.Errorf("loading the client configuration: %w", err)
	}
	if o.testAdmission != "" {
		c, err := client.New(cfg, client.Options{Scheme: newScheme()})
		if err != nil {
			return fmt.Errorf("creating the client: %w", err)
		}
		ctx, cancel := context.WithTimeout(ctrl.SetupSignalHandler(), time.Minute)
		defer cancel()
		return testAdmission(ctx, c, o.testAdmission, o.kinds.Of(all.Kinds)[0].GVK.Kind)
	}
	stop, err := o.tracing.Start("modelbox-controller")
	if err != nil {
		return err
	}
	defer stop()
	o.tracing.Requests(cfg)
	managerOptions, err := o.managerOptions(cfg)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, managerOptions)
	if err != nil {
		return fmt.Errorf("creating the manager: %w", err)
	}
	if err := addControllersAndProbes(mgr, &o); err != nil {
		return err
	}
	err = startManager(ctrl.SetupSignalHandler(), mgr)
	if errors.Is(err, cache.ErrListable) {
		ctrl.Log.Info("Ending without an error, to be started again", "reason", err.Error())
		return nil
	}
	return err
}

// startManager starts a manager and waits until it has ended. Before its caches have synced, which
// they never do without permissions, a manager does not end; but it is not elected either, so that
// no controller has begun.
func startManager(ctx context.Context, mgr manager.Manager) error {
	const endUnelected = 5 * time.Second
	ended := make(chan error, 2)
	go func() { ended <- mgr.Start(ctx) }()
	context.AfterFunc(ctx, func() {
		select {
		case <-mgr.Elected():
		case <-time.After(endUnelected):
			ended <- nil
		}
	})
	return <-ended
}

// defaultReconcileTimeout bounds one attempt to reconcile an object. A worker waits for
// responses of the API server, and until the cache shows the worker's own writes. Without a
// bound, a watch that never delivers another event would block it for ever, and eight such
// objects would block all of their kind.
// The longest attempt is seven requests one after the other (a child that is changed for the
// first time is read, its managedFields are upgraded, and it is applied; a second child;
// status). At 5 s each, with which the leader still keeps its lease, that is 35 s; and the
// API server ends a single request after a minute. Two minutes are longer than both.
const defaultReconcileTimeout = 2 * time.Minute

// cacheSyncTimeout is how long the first lists may take. By default a process ends after two
// minutes without all of them and begins again, so that with many large objects it would never have
// them.
const cacheSyncTimeout = time.Hour

// managerOptions returns the options of the manager: a client that limits its writes and sees
// them in the cache, and a cache that holds no more than the controllers read. It sets in cfg how
// all clients of the process send requests.
func (o *options) managerOptions(cfg *rest.Config) (ctrl.Options, error) {
	// The number of workers bounds the requests that are sent at the same time, and API
	// priority and fairness distributes the API server's capacity. With a second limit here
	// it would not be visible which of the two is too low.
	cfg.QPS = -1
	// As Kubernetes' own controllers: bandwidth within a cluster is cheap, and compression
	// costs the API server CPU.
	cfg.DisableCompression = true
	cfg.UserAgent = "modelbox-controller/" + version.Version
	server, err := o.metricsServer()
	if err != nil {
		return ctrl.Options{}, err
	}
	options := ctrl.Options{
		Scheme:                        newScheme(),
		NewCache:                      o.leftOut.New,
		Cache:                         o.namespaces.cache(),
		NewClient:                     limit.NewClient,
		Client:                        client.Options{Cache: &client.CacheOptions{Unstructured: true, EnableReadYourWritesConsistency: new(true)}},
		Metrics:                       server,
		HealthProbeBindAddress:        o.probeAddress,
		PprofBindAddress:              o.pprofAddress,
		WebhookServer:                 webhook.NewServer(webhook.Options{Port: -1}),
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              electionID,
		LeaderElectionReleaseOnCancel: true,
		Controller: config.Controller{
			MaxConcurrentReconciles: o.workers,
			EnableWarmup:            new(true),
			ReconciliationTimeout:   o.reconcileTimeout,
			CacheSyncTimeout:        cacheSyncTimeout,
		},
	}
	for _, kind := range o.kinds.Of(all.Kinds) {
		o.leftOut.Kinds = append(o.leftOut.Kinds, kind.GVK)
	}
	o.watches = &watches.Watches{}
	options.Cache.DefaultWatchErrorHandler = o.watches.Failed
	if !o.leaderElect {
		return options, nil
	}
	options.LeaderElectionResourceLockInterface, err = o.newLease(cfg)
	return options, err
}

// newScheme returns a scheme of Kubernetes' own kinds and of the five.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(api.AddToScheme(scheme))
	return scheme
}

// addControllersAndProbes adds the controllers and the probes to a manager.
func addControllersAndProbes(mgr manager.Manager, o *options) error {
	if err := o.addControllers(mgr, clock.RealClock{}); err != nil {
		return err
	}
	if err := o.addCertificate(mgr); err != nil {
		return err
	}
	if err := mgr.Add(&o.leftOut); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("caches", cacheSynced(mgr.GetCache()))
}

// readyzTimeout bounds one readiness probe; kubelet waits for a second by default.
const readyzTimeout = 500 * time.Millisecond

// cacheSynced returns a healthz.Checker that succeeds when all informers have synced, so that
// a rollout proceeds only when the new pod can reconcile. Without the right to list one of the
// kinds it never succeeds. Without a CRD it does not either, or the process has ended already.
func cacheSynced(c ctrlcache.Cache) healthz.Checker {
	return func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), readyzTimeout)
		defer cancel()
		if !c.WaitForCacheSync(ctx) {
			return errors.New("the informer caches have not synced yet")
		}
		return nil
	}
}
