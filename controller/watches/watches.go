// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watches has the informers of kinds of which only few owners have a child, and which a cluster may not
// have. Each starts when the first owner asks for it, and stops when its objects may not be listed any more, or
// the cluster does not have the kind any more. Neither affects the other informers.
package watches

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
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
	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
)

// again is how long an informer that could not be started is not tried again.
const again = time.Minute

// UnavailableError reports that the objects of a kind cannot be listed: the cluster does not have the kind, or the
// controller has no permission.
type UnavailableError struct {
	Block *children.Block
	Err   error
}

func (e *UnavailableError) Error() string {
	if meta.IsNoMatchError(e.Err) || apierrors.IsNotFound(e.Err) {
		return fmt.Sprintf("Unavailable: spec.%s needs the kind %s of %s, which this cluster does not have: install %s, or remove spec.%s",
			e.Block.Field, e.Block.Kind.Kind, e.Block.Kind.GroupVersion(), e.Block.Provider, e.Block.Field)
	}
	return fmt.Sprintf("Unavailable: spec.%s needs a permission of the operator, see docs/optional-children.md, or remove it: %.300s", e.Block.Field, e.Err)
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// Watches are the informers of the kinds in children.Blocks. It is safe for concurrent use.
type Watches struct {
	// Every is the time between two attempts to start informers that have stopped; trigger.Longest if it is 0.
	Every time.Duration

	cache ctrlcache.Cache
	live  client.Reader
	clock clock.PassiveClock

	// starting is held while an informer is started.
	starting sync.Mutex
	owners   []owner

	states sync.Map // A state for each of children.Blocks.
}

// owner is a controller whose objects have such children.
type owner struct {
	controller.Controller
	schema.GroupKind
}

// state is the result of the last attempt to start an informer.
type state struct {
	err error
	at  time.Time
}

// Add adds w to a manager, with the first of the controllers whose objects have such children. The objects of a
// controller are reconciled when their children change.
func (w *Watches) Add(mgr manager.Manager, clk clock.PassiveClock, c controller.Controller, kind schema.GroupKind) error {
	w.owners = append(w.owners, owner{c, kind})
	if len(w.owners) > 1 {
		return nil
	}
	w.cache, w.live, w.clock = mgr.GetCache(), mgr.GetAPIReader(), clk
	for _, block := range children.Blocks {
		w.states.Store(block, state{})
	}
	return mgr.Add(w)
}

// Start implements manager.Runnable. It starts the informers of kinds of which there are children already, and starts
// again those that have stopped.
func (w *Watches) Start(ctx context.Context) error {
	unknown := slices.Clone(children.Blocks)
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		for _, block := range children.Blocks {
			if w.state(block).err != nil {
				_ = w.Ensure(ctx, block) // An owner that needs it reports the error.
			}
		}
		unknown = slices.DeleteFunc(unknown, func(block *children.Block) bool { return w.resume(ctx, block) })
	}, cmp.Or(w.Every, trigger.Longest))
	return nil
}

// resume starts the informer of a block if there are children: these may be ones that their owners must not have any
// more. It reports whether that is known. Without the permission it is not asked again, because it is not a refusal
// that would end by itself, and the requests would have no end.
func (w *Watches) resume(ctx context.Context, block *children.Block) (known bool) {
	found, err := block.Shared, error(nil)
	if !found {
		found, err = cache.Find(ctx, w.live, w.cache, block.Kind, client.MatchingLabels{api.LabelManagedBy: api.ManagedBy})
	}
	if err == nil && found {
		err = w.Ensure(ctx, block)
	}
	if err != nil && !isUnavailable(err) {
		log.FromContext(ctx).Error(err, "Looking for children", "kind", block.Kind.Kind)
		return false
	}
	return true
}

// Runs reports whether the informer of a block runs.
func (w *Watches) Runs(block *children.Block) bool {
	if w == nil {
		return false
	}
	s := w.state(block)
	return s.err == nil && !s.at.IsZero()
}

func (w *Watches) state(block *children.Block) state {
	s, _ := w.states.Load(block)
	return s.(state)
}

func (w *Watches) failed(block *children.Block, err error) {
	w.states.Store(block, state{err, w.clock.Now()})
}

// Ensure starts the informer of a block, unless it runs. It returns an *UnavailableError if it cannot run, which is
// tried again after a minute; any other error is worth a retry.
func (w *Watches) Ensure(ctx context.Context, block *children.Block) error {
	if w == nil {
		return nil // The reader has no informers.
	}
	w.starting.Lock()
	defer w.starting.Unlock()
	s := w.state(block)
	switch {
	case w.Runs(block):
		return nil
	case s.err != nil && w.clock.Since(s.at) < again:
		return &UnavailableError{block, s.err}
	}
	var err error
	if !block.Shared {
		_, err = cache.Find(ctx, w.live, w.cache, block.Kind)
	}
	if isUnavailable(err) {
		w.failed(block, err)
		return &UnavailableError{block, err}
	}
	if err != nil {
		return fmt.Errorf("listing objects of the kind %s: %w", block.Kind.Kind, err)
	}
	informer, err := trigger.Synced(ctx, w.cache, block.New())
	if err != nil {
		return err
	}
	// Before the first event: its reconcile looks only at what runs. One that has failed meanwhile is gone.
	if !w.states.CompareAndSwap(block, s, state{at: w.clock.Now()}) {
		return &UnavailableError{block, w.state(block).err}
	}
	for _, o := range w.owners {
		// Children have the name of their owner.
		err = errors.Join(err, o.Watch(&source.Informer{
			Informer: informer, Handler: &handler.EnqueueRequestForObject{}, Predicates: []predicate.Predicate{trigger.ChildChanged(o.GroupKind)},
		}))
	}
	return err
}

// isUnavailable reports whether an error of a list says that there is no such kind, or no permission.
func isUnavailable(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err)
}

// Failed is the function DefaultWatchErrorHandler of the cache. It stops the informer of a block that cannot run any more,
// unless other controllers have it as well.
func (w *Watches) Failed(ctx context.Context, r *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, r, err)
	if !isUnavailable(err) {
		return
	}
	for _, block := range children.Blocks {
		// A reflector describes a kind that has no Go type here by its name.
		described := []string{block.Kind.String(), reflect.TypeOf(block.New()).String()}
		if !block.Shared && slices.Contains(described, r.TypeDescription()) {
			w.failed(block, err)
			_ = w.cache.RemoveInformer(ctx, block.New()) // It returns an error for an object without a kind.
		}
	}
}
