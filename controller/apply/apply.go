// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply writes children: the objects that an owner controls. It creates a child that
// does not exist, applies one that is not settled, deletes one that is no longer desired, and does
// not change objects of other owners.
//
// A child is settled if its desired state is the one that was written last, and what our field
// manager owns in it is what the API server returned then. Both are hashes in status.children of
// the owner, which users may not write. So no table of ours decides what may differ: managedFields
// do, which the API server keeps by its own schema, and a settled child costs no comparison and no
// request, across a restart of the controller too.
//
// A child is created by a plain create, because a server-side apply would merge into an
// object of another owner that was created meanwhile. Every later write is a server-side
// apply with the uid and the resource version of the child as preconditions. The fields of a
// plain create belong to an Update entry of metadata.managedFields, from which an apply
// removes nothing, so this entry is changed into an Apply entry before the first apply
// (KEP-555 and k8s.io/client-go/util/csaupgrade).
package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/kinds"
)

// FieldManager is the field manager of all writes.
const FieldManager = api.FieldManager

// Access is how children are read and written.
type Access struct {
	// Client reads from the cache and sees its own writes there.
	Client client.Client
	// Live reads a child from the API server before it is changed, and the owner of a child before
	// it is written, except the children of a new owner.
	Live client.Reader
}

// Writer writes the children of the objects of one kind.
type Writer struct {
	Access
	// Recorder emits the events for repairs.
	Recorder events.EventRecorder
	// Pace bounds the writes after which a child is as it was: those of owners that have lost, or
	// never had, status.children. nil is no bound.
	Pace flowcontrol.PassiveRateLimiter
}

// NewWriter returns a Writer with the clients of a manager.
func NewWriter(mgr manager.Manager) Writer {
	const perSecond = 10
	return Writer{
		Access:   Access{Client: mgr.GetClient(), Live: mgr.GetAPIReader()},
		Recorder: mgr.GetEventRecorder(FieldManager),
		Pace:     flowcontrol.NewTokenBucketPassiveRateLimiter(perSecond, perSecond),
	}
}

// Child is one child of an object. It has the name that kinds.ChildName returns.
type Child struct {
	// Desired is the desired state, TypeMeta included; nil if there must be no such child.
	Desired client.Object
	// Live is filled with the observed state, of which the cache has a part (controller/cache);
	// after a write it is whole. Its type determines what is read.
	Live client.Object
	// Expect is what Live must be like in the API server before it is changed.
	Expect []Expectation
	// Optional is set for a child that never keeps the others from being written, whatever is wrong
	// with it.
	Optional bool
	// Access replaces that of the Writer for a kind that a cluster may lose while the controller
	// runs. Its Client does not see its own writes in the cache.
	Access *Access
	// Err is why the child cannot be read, or its desired state is not known. It is not written
	// then.
	Err error

	found, settled bool
}

// of returns the Writer of one child.
func (w Writer) of(child *Child) Writer {
	if child.Access != nil {
		w.Access = *child.Access
	}
	return w
}

// Exists reports whether Read or Observe found, or Write left, the child.
func (c *Child) Exists() bool { return c.found }

// Settled reports whether Write has found, or left, the child with its desired state.
func (c *Child) Settled() bool { return c.settled }

// Read fills Live with the state in the cache, or sets Err. All children are read before any is
// written, so that one name conflict leaves all of them as they are, unless the child is optional.
//
// Errors: a status.Readiness if a child's name is taken, and while an old child is being deleted.
func (w Writer) Read(ctx context.Context, owner *Owner, children ...*Child) error {
	for _, child := range children {
		err := w.of(child).read(ctx, owner, child)
		if _, known := errors.AsType[status.Readiness](err); known && !child.Optional {
			return err
		}
		child.Err = cmp.Or(child.Err, err)
	}
	return nil
}

func (w Writer) read(ctx context.Context, owner *Owner, child *Child) error {
	err := get(ctx, w.Client, owner, child.Live)
	child.found = err == nil
	switch {
	case client.IgnoreNotFound(err) != nil:
		return err
	case child.Desired == nil:
		child.found = child.found && metav1.IsControlledBy(child.Live, owner) && child.Live.GetDeletionTimestamp() == nil
		return nil
	case !child.found:
		return nil
	}
	return checkOwner(child.Live, child.Desired)
}

// get reads a child of an owner, or the owner.
func get(ctx context.Context, from client.Reader, owner, into client.Object) error {
	if wrapped, ok := owner.(*Owner); ok {
		owner = wrapped.Object
	}
	key := client.ObjectKey{Namespace: owner.GetNamespace(), Name: kinds.ChildName(owner, into)}
	if err := from.Get(ctx, key, into); err != nil {
		return fmt.Errorf("reading %s %q: %w", kinds.KindOf(into), key.Name, err)
	}
	return nil
}

// Observe fills Live with the children that owner controls, and empties the others, or sets Err. It
// is for an object whose children could not be applied: an object of the child's name that belongs
// to another owner does not count for the status, whatever /scale selects.
func (w Writer) Observe(ctx context.Context, owner client.Object, children ...*Child) {
	for _, child := range children {
		err := get(ctx, w.of(child).Client, owner, child.Live)
		child.found = err == nil && metav1.IsControlledBy(child.Live, owner)
		if !child.found {
			child.Live = kinds.NewOf(child.Live)
		}
		child.Err = client.IgnoreNotFound(err)
	}
}

// Write creates, applies or deletes the children that Read has read, so that they have their
// desired state, fills in Live, and sets owner.Children. One that fails does not keep the others
// from being written. It emits an event for a repair. After the time that it returns, 0 for never,
// it is to be called again.
//
// Errors: a status.Readiness where the owner is paused and a write is due; *RefusedError if the API
// server refused a write, *limit.ContestedError if other clients undo its writes, ErrOwnerGone if
// the owner was deleted; any other error is worth a retry.
func (w Writer) Write(ctx context.Context, owner *Owner, children ...*Child) (time.Duration, error) {
	contested := owner.Limit.Contested()
	if contested != nil && contested.Exhausted && !owner.Paused {
		return 0, contested
	}
	if err := w.checkOwnerIsCurrent(ctx, owner, children); err != nil {
		return 0, err
	}
	var later time.Duration
	var failed error
	for _, child := range children {
		wait, err := w.of(child).write(ctx, owner, child)
		if concernsAll(err) && !child.Optional {
			return 0, err
		}
		later, failed = max(later, wait), join(failed, err)
	}
	if failed == nil && contested != nil {
		return later, contested
	}
	return later, failed
}
