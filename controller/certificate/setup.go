// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"cmp"
	"context"
	"fmt"
	"math"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/modelbox-operator/modelbox-operator/api"
)

// SetupWithManager adds the controller that keeps the certificate to a manager. Its informers are
// its own: they select single objects by name, which is all that the process may read, and the
// process is ready without them.
func SetupWithManager(mgr manager.Manager, clk clock.PassiveClock, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	o.Settle, o.Mounted = cmp.Or(o.Settle, settle), cmp.Or(o.Mounted, mounted)
	informers, err := newCache(mgr, &o)
	if err != nil {
		return fmt.Errorf("creating the cache: %w", err)
	}
	live, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("creating the client: %w", err)
	}
	r := &rotator{
		Options: o, rules: o.rules(), cached: informers, live: live, clock: clk,
		recorder: mgr.GetEventRecorder(api.FieldManager),
	}
	return builder.ControllerManagedBy(mgr).Named("webhook-certificate").WithOptions(controller.Options{
		MaxConcurrentReconciles: 1,
		EnableWarmup:            new(false), // Only the leader watches.
		// Without its rights the controller waits for them. The process has other work.
		CacheSyncTimeout: math.MaxInt64,
	}).
		WatchesRawSource(source.Kind[client.Object](informers, &corev1.Secret{}, one())).
		WatchesRawSource(source.Kind[client.Object](informers, &admissionregistrationv1.MutatingWebhookConfiguration{}, one())).
		WatchesRawSource(source.Kind[client.Object](informers, &admissionregistrationv1.ValidatingWebhookConfiguration{}, one())).
		Complete(r)
}

// one queues the one certificate, whatever has changed.
func one() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{}}
	})
}

// newCache returns a cache of the Secret and of the configurations. The manager starts it, in the
// leader.
func newCache(mgr manager.Manager, o *Options) (cache.Cache, error) {
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	informers, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Namespaces: map[string]cache.Config{o.Namespace: {FieldSelector: named(o.Secret)}}},
			&admissionregistrationv1.MutatingWebhookConfiguration{}:   {Field: named(o.Configuration)},
			&admissionregistrationv1.ValidatingWebhookConfiguration{}: {Field: named(o.Configuration)},
		},
	})
	if err != nil {
		return nil, err
	}
	// A runnable that is no cache begins when this process becomes the leader.
	return informers, mgr.Add(manager.RunnableFunc(informers.Start))
}
