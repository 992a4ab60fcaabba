// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/controller/certificate"
	"github.com/modelbox-operator/modelbox-operator/controller/watches"
	"github.com/modelbox-operator/modelbox-operator/internal/tracing"
	"github.com/modelbox-operator/modelbox-operator/internal/version"
	"github.com/modelbox-operator/modelbox-operator/kinds/all"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
)

// options are the flags of the process.
type options struct {
	version                                    bool
	testAdmission, context                     string
	metricsAddress, probeAddress, pprofAddress string
	metrics                                    metricsserver.Options
	leaderElect                                bool
	leaderNamespace                            string
	namespaces                                 namespaces
	leftOut                                    cache.LeftOut
	kinds                                      all.Selection
	watches                                    *watches.Watches
	workers                                    int
	reconcileTimeout                           time.Duration
	restartRate                                int
	fetcher                                    models.Fetcher
	certificate                                certificate.Options
	tracing                                    tracing.Options
}

func (o *options) bind(flags *flag.FlagSet) {
	flags.BoolVar(&o.version, "version", false, "print the version and exit")
	flags.StringVar(&o.testAdmission, "test-admission", "", "check by a dry run in this namespace that the API server calls the webhook, then exit")
	flags.StringVar(&o.context, "context", "", "context of the kubeconfig; its current context if empty. Has no effect in a pod without a kubeconfig")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "address that /metrics is served on; 0 disables it")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "address that /healthz and /readyz are served on; 0 disables them")
	flags.StringVar(&o.pprofAddress, "pprof-bind-address", "0", "address that /debug/pprof is served on; 0 disables it")
	// The flags that protect /metrics have the names that kubebuilder gives them.
	flags.BoolVar(&o.metrics.SecureServing, "metrics-secure", false, "serve /metrics by TLS, to clients whose token may get the URL /metrics; "+
		"requires permission to create tokenreviews and subjectaccessreviews")
	flags.StringVar(&o.metrics.CertDir, "metrics-cert-path", "", "directory of the certificate for --metrics-secure, read again when it changes; self-signed if empty")
	flags.StringVar(&o.metrics.CertName, "metrics-cert-name", "tls.crt", "file of the certificate in --metrics-cert-path")
	flags.StringVar(&o.metrics.KeyName, "metrics-cert-key", "tls.key", "file of the private key in --metrics-cert-path")
	flags.BoolVar(&o.leaderElect, "leader-elect", true, "reconcile only while holding the lease, so that several replicas may run")
	flags.StringVar(&o.leaderNamespace, "leader-election-namespace", "", "namespace of the lease; the pod's if empty, required outside a pod")
	flags.Func("namespaces", "comma-separated namespaces whose objects are reconciled, and outside which nothing is read or written but the lease; all namespaces if not set", o.namespaces.set)
	o.kinds.AddFlag(flags)
	flags.IntVar(&o.workers, "max-concurrent-reconciles", 8, "objects of one kind that are reconciled at the same time")
	flags.DurationVar(&o.reconcileTimeout, "reconcile-timeout", defaultReconcileTimeout, "how long one attempt to reconcile an object may take before it is cancelled and retried")
	flags.IntVar(&o.restartRate, "max-config-rollouts-per-minute", 10, "rollouts of changed configuration (spec.restartOnChange) that begin per minute, "+
		"of all kinds and namespaces together; 0 means unlimited")
	bindFetcher(flags, &o.fetcher)
	// In an install without cert-manager, the leader issues the certificate of the webhook.
	flags.StringVar(&o.certificate.Secret, "webhook-certificate-secret", "", "name of the Secret, in the namespace of the lease, for the webhook's certificate; "+
		"empty disables certificate management")
	flags.DurationVar(&o.certificate.Validity, "webhook-certificate-validity", 30*24*time.Hour,
		"validity of the certificate in --webhook-certificate-secret, at least "+certificate.MinValidity.String()+"; it is renewed after two thirds of that")
	o.tracing.AddFlags(flags)
}

const (
	// electionID is the name of the Lease that the replicas of this process compete for.
	electionID = "modelbox-controller"
	// renewDeadline is controller-runtime's default. client-go allows half of it for one request.
	renewDeadline = 10 * time.Second
	// podNamespace is the file in which kubelet provides the namespace of a pod.
	podNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// ownNamespace returns the namespace of the lease and of the webhook's certificate: that of the
// flag, or else that of the pod.
func (o *options) ownNamespace() (string, error) {
	if o.leaderNamespace != "" {
		return o.leaderNamespace, nil
	}
	data, err := os.ReadFile(podNamespace)
	if err != nil {
		return "", fmt.Errorf("set --leader-election-namespace outside a pod: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// newLease returns client-go's lock of leader election. The one that controller-runtime makes by
// default differs in a recorder: it emits core events whose source is the host name, and
// config/policies allows this process only events.k8s.io with its own name.
func (o *options) newLease(cfg *rest.Config) (resourcelock.Interface, error) {
	namespace, err := o.ownNamespace()
	if err != nil {
		return nil, err
	}
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the host name, the identity in the lease: %w", err)
	}
	// The UUID is new in each process: a restarted container has the same host name.
	identity := resourcelock.ResourceLockConfig{Identity: hostname + "_" + string(uuid.NewUUID())}
	return resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, electionID, identity, rest.AddUserAgent(cfg, "leader-election"), renewDeadline)
}

// namespaces is the flag --namespaces: the namespaces whose objects are reconciled, all of them
// if there are none. Watches and requests are then only in these namespaces, and in that of the
// lease, so that the process needs a Role in each and no ClusterRole.
type namespaces []string

// set parses a comma-separated list. It returns an error if the list is empty, which a template
// may contain by mistake and which would otherwise mean all namespaces, and for an invalid name,
// or one that occurs twice.
func (n *namespaces) set(value string) error {
	if value == "" {
		return errors.New("it is empty: leave out the flag to reconcile the objects of all namespaces")
	}
	var parsed namespaces
	for name := range strings.SplitSeq(value, ",") {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return fmt.Errorf("%q is not the name of a namespace: %s", name, strings.Join(problems, "; "))
		}
		if slices.Contains(parsed, name) {
			return fmt.Errorf("%q occurs twice", name)
		}
		parsed = append(parsed, name)
	}
	*n = parsed
	return nil
}

// cache returns the options of a cache of these namespaces.
func (n namespaces) cache() ctrlcache.Options {
	var options ctrlcache.Options
	for _, name := range n {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]ctrlcache.Config{}
		}
		options.DefaultNamespaces[name] = ctrlcache.Config{}
	}
	return options
}

// metricsServer returns the options of the metrics server. It returns an error if the certificate
// is missing: controller-runtime would use a self-signed one instead, which clients refuse for a
// reason that is hard to find.
func (o *options) metricsServer() (metricsserver.Options, error) {
	server := o.metrics
	server.BindAddress = o.metricsAddress
	if !server.SecureServing {
		if server.CertDir != "" {
			return server, errors.New("--metrics-cert-path has no effect without --metrics-secure: set both, or none")
		}
		return server, nil
	}
	server.FilterProvider = filters.WithAuthenticationAndAuthorization
	server.TLSOpts = []func(*tls.Config){metricsTLS}
	if server.CertDir != "" {
		for _, name := range []string{server.CertName, server.KeyName} {
			if _, err := os.Stat(filepath.Join(server.CertDir, name)); err != nil {
				return server, fmt.Errorf("--metrics-cert-path: %w", err)
			}
		}
	}
	return server, nil
}

// metricsTLS sets what the metrics server accepts: no HTTP/2, which a scrape does not need, and
// whose streams cost the server more than the client.
func metricsTLS(config *tls.Config) {
	config.MinVersion = tls.VersionTLS12
	config.NextProtos = []string{"http/1.1"}
}

// webhookService is the name of the webhook's Service, in the namespace of the operator, and what
// the names of the webhook configurations begin with.
const webhookService = "modelbox-webhook"

// configuration returns the name of the two webhook configurations. Those of an install that is
// limited to namespaces end in the namespace of the operator (hack/namespaced).
func (n namespaces) configuration(own string) string {
	if len(n) == 0 {
		return webhookService
	}
	return webhookService + "-" + own
}

// addCertificate adds the controller that keeps the certificate of the webhook, if a flag names
// its Secret.
func (o *options) addCertificate(mgr manager.Manager) error {
	if o.certificate.Secret == "" {
		return nil
	}
	keep := o.certificate
	var err error
	if keep.Namespace, err = o.ownNamespace(); err != nil {
		return err
	}
	keep.Service = webhookService
	keep.Configuration = cmp.Or(keep.Configuration, o.namespaces.configuration(keep.Namespace))
	if err := certificate.SetupWithManager(mgr, clock.RealClock{}, keep); err != nil {
		return fmt.Errorf("--webhook-certificate-secret: %w", err)
	}
	return nil
}

// The bounds of the flags, which are those of status.fetcher of a ModelBox.
const maxImage, maxMirrors, maxMirror = 1024, 64, 4096

// bindFetcher adds the flags of the init container that fetches a model.
func bindFetcher(flags *flag.FlagSet, f *models.Fetcher) {
	f.Image = version.ControllerImage
	flags.Func("fetch-image", "image of the init container that fetches the model of a ModelBox (default the controller's own image, "+f.Image+")",
		func(value string) error {
			// An image that no node can parse would be noticed by each pod that fetches a model.
			_, err := reference.ParseNormalizedNamed(value)
			if err == nil && len(value) > maxImage {
				err = fmt.Errorf("it has more than %d bytes", maxImage)
			}
			if err != nil {
				return fmt.Errorf("it is not an image reference such as registry.example.com/team/modelbox-controller:v1: %w", err)
			}
			f.Image = value
			return nil
		})
	flags.Func("model-mirror", "PREFIX=REPLACEMENT: replaces the beginning of the URLs that models are fetched from, such as hf://=https://hub.example.com; may be repeated",
		func(value string) error { return addMirror(f, value) })
}

// addMirror adds a mirror. The program that fetches parses mirrors in the same way (fetch/guard).
func addMirror(f *models.Fetcher, value string) error {
	if len(value) > maxMirror || len(f.Mirrors) >= maxMirrors {
		return fmt.Errorf("there may be %d mirrors of at most %d bytes each", maxMirrors, maxMirror)
	}
	prefix, replacement, _ := strings.Cut(value, "=")
	if !isURL(prefix) || !isURL(replacement) {
		return fmt.Errorf("%q is not PREFIX=REPLACEMENT of two URLs that begin with https://, http://, hf:// or s3://", value)
	}
	for _, other := range f.Mirrors {
		if strings.HasPrefix(other, prefix+"=") {
			return fmt.Errorf("the prefix %q occurs twice", prefix)
		}
	}
	f.Mirrors = append(f.Mirrors, value)
	return nil
}

func isURL(text string) bool {
	scheme, _, found := strings.Cut(text, "://")
	return found && slices.Contains([]string{models.HTTPS, models.HTTP, models.Hub, models.S3}, scheme)
}
