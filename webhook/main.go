// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command webhook sets the defaults of every object of the ModelBox Operator's kinds,
// and refuses what cannot work before it is stored.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/modelbox-operator/modelbox-operator/internal/tracing"
	"github.com/modelbox-operator/modelbox-operator/internal/version"
	"github.com/modelbox-operator/modelbox-operator/kinds/all"
	"github.com/modelbox-operator/modelbox-operator/webhook/admission"
	"github.com/modelbox-operator/modelbox-operator/webhook/sizesfile"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "webhook:", err)
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
	log.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
	log.Log.Info("Starting", "version", version.Version)
	metrics.Registry.MustRegister(version.Collector("webhook"))
	return serve(signals.SetupSignalHandler(), &o)
}

// options are the flags of the process.
type options struct {
	version                    bool
	metrics                    metricsserver.Options
	metricsClientCA            string
	probeAddress, pprofAddress string
	address, certDir           string
	drain                      time.Duration
	sizes                      string
	kinds                      all.Selection
	tls                        tlsOptions
	tracing                    tracing.Options
}

func (o *options) bind(flags *flag.FlagSet) {
	flags.BoolVar(&o.version, "version", false, "print the version and exit")
	flags.StringVar(&o.metrics.BindAddress, "metrics-bind-address", ":8080", "address that /metrics is served on; 0 disables it")
	flags.BoolVar(&o.metrics.SecureServing, "metrics-secure", false, "serve /metrics by TLS")
	flags.StringVar(&o.metrics.CertDir, "metrics-cert-path", "", "directory of the certificate for --metrics-secure, read again when it changes; self-signed if empty")
	flags.StringVar(&o.metrics.CertName, "metrics-cert-name", "tls.crt", "file of the certificate in --metrics-cert-path")
	flags.StringVar(&o.metrics.KeyName, "metrics-cert-key", "tls.key", "file of the private key in --metrics-cert-path")
	flags.StringVar(&o.metricsClientCA, "metrics-client-ca", "", "file of CA certificates; if set, a client of /metrics must present a certificate issued by one of them")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "address that /healthz and /readyz are served on; 0 disables them")
	flags.StringVar(&o.pprofAddress, "pprof-bind-address", "0", "address that /debug/pprof is served on; 0 disables it")
	flags.StringVar(&o.address, "webhook-bind-address", ":9443", "address that the webhooks are served on")
	flags.StringVar(&o.certDir, "cert-dir", "/etc/modelbox-webhook/tls", "directory of tls.crt and tls.key, read again when they change")
	flags.DurationVar(&o.drain, "shutdown-delay", 15*time.Second, "how long to keep serving after becoming unready, while endpoints are updated")
	flags.StringVar(&o.sizes, "sizes-file", "/etc/modelbox-webhook/sizes/sizes.yaml", "file of the cluster's sizes, read again when it changes; "+
		"if it does not exist, only small, medium and large are available")
	o.kinds.AddFlag(flags)
	o.tls.addFlags(flags)
	o.tracing.AddFlags(flags)
}

// serve serves the webhooks, the metrics and the probes until ctx is done.
func serve(ctx context.Context, o *options) error {
	stop, err := o.tracing.Start("modelbox-webhook")
	if err != nil {
		return err
	}
	defer stop()
	mgr, err := newManager(o)
	if err != nil {
		return err
	}
	file := sizesfile.New(o.sizes)
	if err := mgr.Add(file); err != nil {
		return err
	}
	register(mgr.GetWebhookServer(), o.kinds.Of(all.WithSizes(file.Get)))
	return mgr.Start(ctx)
}

// requestTime is how long the requests in flight may take when the process ends. The webhook
// configurations have a timeout of 5 s.
const requestTime = 20 * time.Second

// newManager returns a manager of the servers. This process sends no request to an API
// server: its manager has no address of one, and there is no flag for a kubeconfig.
func newManager(o *options) (manager.Manager, error) {
	webhooks, err := newServer(o)
	if err != nil {
		return nil, err
	}
	if err := o.secureMetrics(); err != nil {
		return nil, err
	}
	mgr, err := manager.New(&rest.Config{}, manager.Options{
		Metrics:                 o.metrics,
		HealthProbeBindAddress:  o.probeAddress,
		PprofBindAddress:        o.pprofAddress,
		WebhookServer:           webhooks,
		GracefulShutdownTimeout: new(o.drain + requestTime),
	})
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return mgr, mgr.AddReadyzCheck("webhook", webhooks.ready)
}

// +kubebuilder:webhookconfiguration:mutating=true,name=modelbox-webhook
// +kubebuilder:webhookconfiguration:mutating=false,name=modelbox-webhook
// +kubebuilder:webhook:path=/mutate-model-github-com-v1-modelbox,mutating=true,name=default.modelbox.model.github.com,reinvocationPolicy=IfNeeded,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=model.github.com,resources=modelboxes,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/validate-model-github-com-v1-modelbox,mutating=false,name=validate.modelbox.model.github.com,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=model.github.com,resources=modelboxes,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/mutate-app-huolala-cn-v1-app,mutating=true,name=default.app.app.huolala.cn,reinvocationPolicy=IfNeeded,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=app.huolala.cn,resources=apps,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/validate-app-huolala-cn-v1-app,mutating=false,name=validate.app.app.huolala.cn,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=app.huolala.cn,resources=apps,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/mutate-mydomain-com-v1beta1-genericdaemon,mutating=true,name=default.genericdaemon.mydomain.com,reinvocationPolicy=IfNeeded,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=mydomain.com,resources=genericdaemons,verbs=create;update,versions=v1beta1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/validate-mydomain-com-v1beta1-genericdaemon,mutating=false,name=validate.genericdaemon.mydomain.com,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=mydomain.com,resources=genericdaemons,verbs=create;update,versions=v1beta1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/mutate-extension-k8s-io-v1-uniteddeployment,mutating=true,name=default.uniteddeployment.extension.k8s.io,reinvocationPolicy=IfNeeded,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=extension.k8s.io,resources=uniteddeployments,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/validate-extension-k8s-io-v1-uniteddeployment,mutating=false,name=validate.uniteddeployment.extension.k8s.io,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=extension.k8s.io,resources=uniteddeployments,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/mutate-mtsre-meitu-com-v1-eru,mutating=true,name=default.eru.mtsre.meitu.com,reinvocationPolicy=IfNeeded,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=mtsre.meitu.com,resources=erus,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/validate-mtsre-meitu-com-v1-eru,mutating=false,name=validate.eru.mtsre.meitu.com,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=mtsre.meitu.com,resources=erus,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system

// register registers the two webhooks of each kind, and what answers in place of all others.
func register(server admission.Registry, kinds []*all.Kind) {
	for _, kind := range kinds {
		admission.Register(server, kind.Erased)
	}
	server.Register("/", http.HandlerFunc(unserved))
}

// unserved answers a webhook that this process does not have. While a rollout adds a kind, the
// API server can reach a pod of the revision before it: it tries again on another connection, as
// long as its own timeout lasts.
func unserved(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Connection", "close")
	w.Header().Set("Retry-After", "1")
	http.Error(w, "this process has no webhook of that path: --kinds leaves its kind out, or another version has it", http.StatusServiceUnavailable)
}
