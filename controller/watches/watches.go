// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watches has the informers of kinds of which only few owners have a child, and which a
// cluster may not have. Each starts when the first owner asks for it, and stops when its objects
// may not be listed any more, or the cluster does not have the kind any more. Neither affects the
// other informers.
package watches

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
)

// UnavailableError reports that the objects of a kind cannot be listed: the cluster does not have
// the kind, the controller has no permission, or the API server does not answer with all of them.
type UnavailableError struct {
	Block *children.Block
	Err   error
}

func (e *UnavailableError) Error() string {
	switch {
	case meta.IsNoMatchError(e.Err) || apierrors.IsNotFound(e.Err):
		return fmt.Sprintf("Unavailable: %s (%s) is not installed; install %s or remove spec.%s",
			e.Block.Kind.Kind, e.Block.Kind.GroupVersion(), e.Block.Provider, e.Block.Field)
	case apierrors.IsForbidden(e.Err):
		return fmt.Sprintf("Unavailable: the controller may not list %s; grant it (docs/optional-children.md) or remove spec.%s: %.300s", e.Block.Kind.Kind, e.Block.Field, e.Err)
	}
	return fmt.Sprintf("Unavailable: the controller cannot list %s, which spec.%s needs: %.300s", e.Block.Kind.Kind, e.Block.Field, e.Err)
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// Watches are the informers of the kinds in children.Blocks. It is safe for concurrent use.
type Watches struct {
	// Every is the time between two attempts to start informers that have stopped; trigger.Longest
	// if it is 0.
	Every time.Duration

	cache ctrlcache.Cache
	live  client.Reader

	owners []owner
	starts map[*children.Block]*Start
	// access is how the children of each block are read and written.
	access map[*children.Block]*apply.Access
}

// owner is a controller whose objects have such children.
type owner struct {
	controller.Controller
	schema.GroupKind
}

// Add adds w to a manager, with the first of the controllers whose objects have such children. The
// objects of a controller are reconciled when their children change.
func (w *Watches) Add(mgr manager.Manager, clk clock.PassiveClock, c controller.Controller, kind schema.GroupKind) error {
	w.owners = append(w.owners, owner{c, kind})
	if len(w.owners) > 1 {
		return nil
	}
	w.cache, w.live = mgr.GetCache(), mgr.GetAPIReader()
	w.starts, w.access = map[*children.Block]*Start{}, map[*children.Block]*apply.Access{}
	for _, block := range children.Blocks {
		w.starts[block] = &Start{Clock: clk, Try: func(ctx context.Context) (ctrlcache.Informer, error) { return w.start(ctx, block) }, Then: w.handle}
		if !block.Shared {
			w.access[block] = newAccess(mgr.GetClient(), w.live)
		}
	}
	return mgr.Add(w)
}

// Start implements manager.Runnable. It starts the informers of kinds of which there are children
// already, and starts again those that have stopped.
func (w *Watches) Start(ctx context.Context) error {
	unknown := slices.Clone(children.Blocks)
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		for _, start := range w.starts {
			if start.Failed() {
				_ = start.Ensure(ctx) // An owner that needs it reports the error.
			}
		}
		unknown = slices.DeleteFunc(unknown, func(block *children.Block) bool { return w.resume(ctx, block) })
	}, cmp.Or(w.Every, trigger.Longest))
	return nil
}

// resume starts the informer of a block if there are children: these may be ones that their owners
// must not have any more. It reports whether that is known. Without the permission it is not asked
// again, because it is not a refusal that would end by itself, and the requests would have no end.
func (w *Watches) resume(ctx context.Context, block *children.Block) (known bool) {
	found, err := block.Shared, error(nil)
	if !found {
		found, err = cache.Find(ctx, w.live, w.cache, block.Kind, client.MatchingLabels{api.LabelManagedBy: api.ManagedBy})
	}
	if err == nil && found {
		_ = w.starts[block].Ensure(ctx)
	}
	if err != nil && !IsUnavailable(err) {
		log.FromContext(ctx).Error(err, "Looking for children", "kind", block.Kind.Kind)
		return false
	}
	return true
}

// Runs reports whether the informer of a block runs. A reader without informers reads all kinds.
func (w *Watches) Runs(block *children.Block) bool { return w == nil || w.starts[block].Runs() }

// Access returns how the children of a block are read and written, nil for that of all other kinds.
func (w *Watches) Access(block *children.Block) *apply.Access {
	if w == nil {
		return nil
	}
	return w.access[block]
}

// Ensure starts the informer of a block, unless it runs, and does not wait for it. It returns
// ErrStarting if it does not run yet, and an *UnavailableError if it cannot run.
func (w *Watches) Ensure(ctx context.Context, block *children.Block) error {
	if w == nil {
		return nil // The reader has no informers.
	}
	err := w.starts[block].Ensure(ctx)
	if err == nil || errors.Is(err, ErrStarting) {
		return err
	}
	return &UnavailableError{block, err}
}

// start starts the informer of a block, and waits until it has all objects.
func (w *Watches) start(ctx context.Context, block *children.Block) (ctrlcache.Informer, error) {
	if !block.Shared { // Without the kind or the permission, it would never have them.
		if _, err := cache.Find(ctx, w.live, w.cache, block.Kind); err != nil {
			return nil, err
		}
	}
	return trigger.Synced(ctx, w.cache, block.New())
}

// handle adds the event handlers of all owners to the informer of a block. Children have the name
// of their owner.
func (w *Watches) handle(informer ctrlcache.Informer) (err error) {
	for _, o := range w.owners {
		err = errors.Join(err, o.Watch(&source.Informer{
			Informer: informer, Handler: &handler.EnqueueRequestForObject{}, Predicates: []predicate.Predicate{trigger.ChildChanged(o.GroupKind)},
		}))
	}
	return err
}

// IsUnavailable reports whether an error says that there is no such kind, or no permission: neither
// passes by itself.
func IsUnavailable(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err)
}

// Failed is the function DefaultWatchErrorHandler of the cache. It stops the informer of a block
// that cannot run any more, unless other controllers have it as well.
func (w *Watches) Failed(ctx context.Context, r *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, r, err)
	if !IsUnavailable(err) {
		return
	}
	for _, block := range children.Blocks {
		// A reflector describes a kind that has no Go type here by its name.
		described := []string{block.Kind.String(), reflect.TypeOf(block.New()).String()}
		if !block.Shared && slices.Contains(described, r.TypeDescription()) {
			w.starts[block].Stop(err)
			_ = w.cache.RemoveInformer(ctx, block.New()) // It returns an error for an object without a kind.
		}
	}
}
