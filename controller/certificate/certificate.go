// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificate issues and renews the serving certificate of the webhook, where
// cert-manager does not. The leader keeps it in one Secret, and the CA that verifies it in
// caBundle of the two webhook configurations.
//
// Each certificate has a CA of its own, whose key exists only while it signs: nothing that is
// stored can sign another certificate. So each renewal changes what the API servers trust and
// what the pods serve, each of which receives that with a delay of its own. The steps of a
// renewal make every combination valid:
//
//  1. stage: a new pair is in the Secret beside the one that is served, and ca.crt has both CAs.
//  2. trust: both configurations have the bundle ca.crt.
//  3. serve, when all API servers have the bundle: the new pair becomes tls.crt and tls.key.
//  4. retire, when all pods have the new pair: ca.crt, and then the configurations, have the
//     new CA only.
//
// The state is in the Secret alone. How long it has lasted is measured by the process, on a
// monotonic clock: after a restart it begins at zero, so a step is later and never earlier.
//
// It is our own because github.com/open-policy-agent/cert-controller (v0.16.0) replaces the CA in
// caBundle at once, so that the API server refuses the pods' certificate until kubelet has updated
// them, and stores the key of the CA. It can take this package's place when it keeps the earlier
// CA.
package certificate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/controller/limit"
)

const (
	// fieldOwner owns caBundle and nothing else. The rest of a configuration belongs to the
	// install.
	fieldOwner = client.FieldOwner("modelbox-controller-certificate")
	// MinValidity is the shortest validity: twenty minutes remain after two thirds of it, and the
	// steps of a renewal take eleven.
	MinValidity = time.Hour
	// maxSleep bounds the time until the next decision, so that a clock that was wrong delays no
	// renewal for long. Such a reconcile sends no request.
	maxSleep = 12 * time.Hour
)

// Options say which certificate is kept, and where.
type Options struct {
	// Namespace is that of the operator, with the Secret, which must exist, and the webhook's
	// Service.
	Namespace, Secret, Service string
	// Configuration is the name of both webhook configurations. One that does not exist is left
	// out.
	Configuration string
	// Validity is how long a certificate is valid. It is renewed after two thirds of that.
	Validity time.Duration
	// Settle and Mounted are the delays of the same names, which tests shorten; zero is the
	// default.
	Settle, Mounted time.Duration
}

// names returns the DNS names that the API server calls the webhook by.
func (r *Options) names() []string {
	service := r.Service + "." + r.Namespace + ".svc"
	return []string{service, service + ".cluster.local"}
}

// rotator makes one step in each reconcile.
type rotator struct {
	Options
	// cached reads the one Secret and the configurations from informers, live the API server.
	cached, live client.Reader
	writer       client.Writer
	recorder     events.EventRecorder
	clock        clock.PassiveClock
	// state is the last one that was observed, and since when it was.
	state string
	since time.Time
}

// SetupWithManager adds the controller that keeps the certificate to a manager. Its informers are
// its own: they select single objects by name, which is all that the process may read, and the
// process is ready without them.
func SetupWithManager(mgr manager.Manager, clk clock.PassiveClock, o Options) error {
	if o.Validity < MinValidity {
		return fmt.Errorf("the validity is %s: it must be at least %s, because a renewal takes minutes", o.Validity, MinValidity)
	}
	o.Settle, o.Mounted = cmp.Or(o.Settle, settle), cmp.Or(o.Mounted, mounted)
	named := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", o.Configuration)}
	informers, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Namespaces: map[string]cache.Config{o.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", o.Secret)}}},
			&admissionregistrationv1.MutatingWebhookConfiguration{}:   named,
			&admissionregistrationv1.ValidatingWebhookConfiguration{}: named,
		},
	})
	if err != nil {
		return fmt.Errorf("creating the cache: %w", err)
	}
	r := &rotator{
		Options: o, clock: clk, cached: informers, live: mgr.GetAPIReader(), writer: mgr.GetClient(), recorder: mgr.GetEventRecorder(api.FieldManager),
	}
	// A runnable that is no cache begins when this process becomes the leader, which alone watches.
	// Without its permissions the controller waits for them, because the process has other work.
	if err := mgr.Add(manager.RunnableFunc(informers.Start)); err != nil {
		return err
	}
	one := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{{}} })
	b := builder.ControllerManagedBy(mgr).Named("webhook-certificate").
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, EnableWarmup: new(false), CacheSyncTimeout: math.MaxInt64})
	for _, kind := range append(newConfigurations(), &corev1.Secret{}) {
		b = b.WatchesRawSource(source.Kind(informers, kind, one))
	}
	return b.Complete(r)
}

func newConfigurations() []client.Object {
	return []client.Object{&admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}}
}

// bundles returns caBundle of each webhook of a configuration.
func bundles(configuration client.Object) (out []*[]byte) {
	switch c := configuration.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range c.Webhooks {
			out = append(out, &c.Webhooks[i].ClientConfig.CABundle)
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range c.Webhooks {
			out = append(out, &c.Webhooks[i].ClientConfig.CABundle)
		}
	}
	return out
}

// Reconcile makes the next step, or waits until one is due. Its own writes, and those of others,
// cause the next reconcile.
func (r *rotator) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	secret, configurations, err := r.read(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	_, requested := secret.Annotations[AnnotationRenew]
	o := &observed{data: secret.Data, requested: requested}
	// A bundle that was replaced and restored between two events is another state.
	state := fmt.Appendf(nil, "%s %s %s", o.data[corev1.TLSCertKey], o.data[keyNextCert], o.data[keyCA])
	for _, c := range configurations {
		for _, bundle := range bundles(c) {
			o.bundles = append(o.bundles, *bundle)
		}
		state = fmt.Appendf(state, " %s/%d", c.GetUID(), c.GetGeneration())
	}
	now := r.clock.Now()
	if r.since.IsZero() || string(state) != r.state {
		r.state, r.since = string(state), now
	}
	d := r.decide(o, r.clock.Since(r.since), now)
	if d.step == idle {
		return reconcile.Result{RequeueAfter: min(max(d.after, time.Second), maxSleep)}, nil
	}
	if err := r.act(ctx, secret, configurations, o, d.step, now); err != nil {
		if !apierrors.IsConflict(err) { // The next attempt resolves a conflict.
			r.recorder.Eventf(secret, nil, corev1.EventTypeWarning, "CertificateNotRenewed", "Renew", "%s", err.Error())
		}
		if contested, ok := errors.AsType[*limit.ContestedError](err); ok {
			return reconcile.Result{RequeueAfter: contested.RetryAfter}, nil
		}
		return reconcile.Result{}, err
	}
	log.FromContext(ctx).Info("Certificate of the webhook", "step", d.step, "reason", d.reason)
	return reconcile.Result{}, nil
}

// read returns the Secret and the configurations that exist.
func (r *rotator) read(ctx context.Context) (secret *corev1.Secret, found []client.Object, err error) {
	secret = &corev1.Secret{}
	if err := r.cached.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Secret}, secret); err != nil {
		return nil, nil, fmt.Errorf("reading the Secret %s/%s, which the controller may not create (if it does not exist, apply the manifests of the install again): %w",
			r.Namespace, r.Secret, err)
	}
	for _, c := range newConfigurations() {
		switch err := r.cached.Get(ctx, client.ObjectKey{Name: r.Configuration}, c); {
		case err == nil:
			found = append(found, c)
		case !apierrors.IsNotFound(err):
			return nil, nil, fmt.Errorf("reading a webhook configuration: %w", err)
		}
	}
	return secret, found, nil
}

// act makes a step.
func (r *rotator) act(ctx context.Context, secret *corev1.Secret, configurations []client.Object, o *observed, s step, now time.Time) error {
	if s == trust {
		return r.trust(ctx, secret, configurations)
	}
	data, err := r.data(s, o, now)
	if err != nil {
		return err
	}
	after := secret.DeepCopy()
	after.Data = map[string][]byte{}
	maps.Copy(after.Data, secret.Data)
	maps.Copy(after.Data, data)
	maps.DeleteFunc(after.Data, func(_ string, value []byte) bool { return value == nil })
	if s == serve || s == issue {
		delete(after.Annotations, AnnotationRenew)
	}
	return r.write(ctx, secret, after)
}

// trust writes the bundle of the Secret into the configurations. A former leader whose cache is
// behind must not restore an earlier bundle, so the Secret is read once more.
func (r *rotator) trust(ctx context.Context, secret *corev1.Secret, configurations []client.Object) error {
	var stored corev1.Secret
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(secret), &stored); err != nil {
		return fmt.Errorf("reading the Secret of the webhook's certificate: %w", err)
	}
	if stored.ResourceVersion != secret.ResourceVersion {
		return apierrors.NewConflict(corev1.Resource("secrets"), stored.Name, errors.New("the cache is behind"))
	}
	for _, c := range configurations {
		after := c.DeepCopyObject().(client.Object)
		for _, bundle := range bundles(after) {
			*bundle = stored.Data[keyCA]
		}
		if err := r.write(ctx, c, after); err != nil {
			return err
		}
	}
	return nil
}

// write writes the difference between an object as it was read and as it is to be, with the
// precondition that it still is as it was read. A strategic merge finds webhooks by their names,
// and changes nothing else in them. The manager's cache has none of these kinds, so no read waits
// for the write.
func (r *rotator) write(ctx context.Context, before, after client.Object) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	patch := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	if err := r.writer.Patch(ctx, after, patch, fieldOwner, client.DisableReadYourWritesConsistency); err != nil {
		return fmt.Errorf("writing %T %s: %w", before, before.GetName(), err)
	}
	return nil
}
