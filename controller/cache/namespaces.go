// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// ErrListable reports that a namespace without which the cache was made may be listed now.
var ErrListable = errors.New("restarting to include the namespace")

var leftOut = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "modelbox_namespaces_skipped",
	Help: "1 for each namespace of --namespaces that is not served, because its objects may not be listed.",
}, []string{"namespace"})

func init() { metrics.Registry.MustRegister(leftOut) }

// LeftOut are the namespaces of a manager that are not in its cache, because the namespace or the
// Role in it was deleted: with them the cache would never sync, and nothing be served. As a
// manager.Runnable it ends the manager when one may be listed, because a cache cannot get another
// one.
type LeftOut struct {
	// Every is the time between two tests.
	Every time.Duration
	// Kinds are those whose objects are reconciled.
	Kinds  []schema.GroupVersionKind
	reader client.Reader
	names  []string
}

// New is the function New, for the namespaces that may be listed. It returns an error if there is
// none, because a cache of no namespaces is one of all.
func (l *LeftOut) New(config *rest.Config, opts ctrlcache.Options) (_ ctrlcache.Cache, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if l.reader, err = client.New(config, client.Options{HTTPClient: opts.HTTPClient, Scheme: opts.Scheme, Mapper: opts.Mapper}); err != nil {
		return nil, err
	}
	for name := range opts.DefaultNamespaces {
		// Informers repeat what fails for another reason.
		if refusal := l.list(ctx, name); apierrors.IsForbidden(refusal) {
			log.Log.Error(refusal, "Skipping a namespace: list is forbidden", "namespace", name)
			leftOut.WithLabelValues(name).Set(1)
			l.names, err = append(l.names, name), errors.Join(err, refusal)
			delete(opts.DefaultNamespaces, name)
		}
	}
	if err != nil && len(opts.DefaultNamespaces) == 0 {
		return nil, fmt.Errorf("none of the namespaces may be listed: %w", err)
	}
	return New(config, opts)
}

// list lists one object of each kind in a namespace. A Role has the permissions for one kind.
func (l *LeftOut) list(ctx context.Context, namespace string) (err error) {
	for i := 0; i < len(l.Kinds) && err == nil; i++ {
		_, err = find(ctx, l.reader, []string{namespace}, l.Kinds[i])
	}
	return err
}

// Find reports whether there are objects of a kind in the namespaces of a cache, by a list of one
// object in each. Without the kind or the permission, of which it returns the error, an informer
// never syncs, and the process with it is never ready.
func Find(ctx context.Context, live client.Reader, of ctrlcache.Cache, kind schema.GroupVersionKind, options ...client.ListOption) (found bool, err error) {
	return find(ctx, live, namespacesOf(of), kind, options...)
}

func find(ctx context.Context, live client.Reader, namespaces []string, kind schema.GroupVersionKind, options ...client.ListOption) (found bool, err error) {
	for _, namespace := range namespaces {
		one := &metav1.PartialObjectMetadataList{}
		one.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := live.List(ctx, one, append(options, client.InNamespace(namespace), client.Limit(1))...); err != nil {
			return false, err
		}
		found = found || len(one.Items) > 0
	}
	return found, nil
}

// Start implements manager.Runnable.
func (l *LeftOut) Start(ctx context.Context) error {
	if len(l.names) == 0 {
		return nil
	}
	return wait.PollUntilContextCancel(ctx, l.Every, false, func(ctx context.Context) (bool, error) {
		for _, name := range l.names {
			if l.list(ctx, name) == nil {
				return false, fmt.Errorf("namespace %q may be listed now: %w", name, ErrListable)
			}
		}
		return false, nil
	})
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: each replica has a cache.
func (*LeftOut) NeedLeaderElection() bool { return false }
