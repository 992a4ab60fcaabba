// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/modelbox-operator/modelbox-operator/api"
)

// FieldManager is the field manager of all writes.
const FieldManager = api.FieldManager

// Writer writes the children of the objects of one kind.
type Writer struct {
	// Client reads from the cache and sees its own writes there.
	Client client.Client
	// Live reads from the API server: only before the first change of a child that has not
	// changed since it was created, before a repair, before a child is created again, and
	// if the cache is stale.
	Live client.Reader
	// Recorder emits the events for repairs and for values that admission rewrote.
	Recorder events.EventRecorder
	// Created is called with each child that was created, as in the API server's response; it
	// may be nil.
	Created func(client.Object)
	// Memory prevents that reads and writes are repeated; it may be nil.
	Memory *Memory

	readOnly bool
}

// NewWriter returns a Writer with the clients of a manager.
func NewWriter(mgr manager.Manager, clk clock.PassiveClock, created func(client.Object)) Writer {
	return Writer{
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Recorder: mgr.GetEventRecorder(FieldManager),
		Created:  created,
		Memory:   &Memory{Clock: clk},
	}
}

// ReadOnlyIf returns a Writer that, if paused, writes nothing: where it would write, Apply
// returns ErrPaused.
func (w Writer) ReadOnlyIf(paused bool) Writer {
	w.readOnly = paused
	return w
}

// Child is one child of an object. It has the name of its owner.
type Child struct {
	// Desired is the desired state, TypeMeta included; nil if there must be no such child.
	Desired client.Object
	// Live is filled with the observed state; its type determines what is read.
	Live client.Object
	// Keep changes Desired to what is to stay as it is in Live, before the two are compared. It
	// is called if the child exists, and may be nil.
	Keep func() error
	// Verify returns an error, of a type that the API server could respond with, if what it stores
	// of Desired lacks what the child must not be without. It may be nil.
	Verify func(stored client.Object) error

	found bool
	// hasSibling is true if another child existed before the first write.
	hasSibling bool
	// wrongGeneration and wrongHash are true if another field manager modified the annotation.
	wrongGeneration, wrongHash bool
}

// Apply creates, applies or deletes the children of owner so that they have their desired
// state, and fills in Live. All of them are read before any is written, so that one name
// conflict leaves all of them as they are. It emits an event for a repair, and for a value
// that admission rewrote, and returns which values do not have their desired value because
// admission rewrote them, in a sentence that is empty if there are none.
//
// Errors: *ConflictError if a child's name is taken, *RefusedError if the API server refused
// a write, *ContestedError if another field manager undoes each repair, ErrDeleting while an
// old child is being deleted, ErrOwnerGone if the owner was deleted, ErrPaused where
// ReadOnlyIf prevented a write; any other error is worth a retry.
func (w Writer) Apply(ctx context.Context, owner client.Object, children ...*Child) (rewritten string, err error) {
	var report report
	err = w.applyAll(ctx, owner, children, &report)
	report.emit(w.Recorder, owner)
	return describe(report.rewrites), err
}

func (w Writer) applyAll(ctx context.Context, owner client.Object, children []*Child, report *report) error {
	for _, child := range children {
		if err := w.read(ctx, owner, child); err != nil {
			return err
		}
	}
	for _, child := range children {
		if err := w.checkGeneration(ctx, owner, child); err != nil {
			return err
		}
		child.hasSibling = slices.ContainsFunc(children, (*Child).Exists)
	}
	var contested error
	for _, child := range children {
		err := w.write(ctx, owner, child, report)
		if err == nil {
			err = child.verifyLive()
		}
		if _, ok := errors.AsType[*ContestedError](err); ok {
			contested = errors.Join(contested, err)
			continue
		}
		if err != nil {
			return err
		}
	}
	return contested
}

// Observe fills Live with the children that owner controls, and empties the others. It is
// for an object whose children could not be applied: an object of the child's name that
// belongs to another owner does not count for the status, whatever /scale selects.
func (w Writer) Observe(ctx context.Context, owner client.Object, children ...*Child) error {
	for _, child := range children {
		err := w.Client.Get(ctx, client.ObjectKeyFromObject(owner), child.Live)
		if err == nil && metav1.IsControlledBy(child.Live, owner) {
			child.found = true
			continue
		}
		child.found = false
		reflect.ValueOf(child.Live).Elem().SetZero()
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading %s %q: %w", kindOf(child.Live), owner.GetName(), err)
		}
	}
	return nil
}

// Exists reports whether Apply left, or Observe found, the child.
func (c *Child) Exists() bool { return c.found }

func (w Writer) read(ctx context.Context, owner client.Object, child *Child) error {
	key := client.ObjectKeyFromObject(owner)
	err := w.Client.Get(ctx, key, child.Live)
	if apierrors.IsNotFound(err) {
		child.found = false
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", kindOf(child.Live), key, err)
	}
	child.found = true
	if child.Desired == nil {
		child.found = metav1.IsControlledBy(child.Live, owner) && child.Live.GetDeletionTimestamp() == nil
		return nil
	}
	if err := checkOwner(child.Live, child.Desired); err != nil || child.Keep == nil {
		return err
	}
	return child.Keep()
}

func (w Writer) write(ctx context.Context, owner client.Object, child *Child, report *report) error {
	action, err := child.action()
	if action == actionUpdate && w.Memory.wasWritten(child.Live.GetUID(), child.Desired) {
		action, child.wrongHash = actionCompare, true
	}
	switch {
	case err != nil:
		return err
	case action == actionNone:
		return w.observeUnchanged(child)
	case action == actionCompare:
		return w.compare(ctx, owner, child, report)
	case w.readOnly:
		return ErrPaused
	case action == actionDelete:
		return Refused("deleting", child.Live, w.delete(ctx, child.Live))
	}
	if err := w.verify(ctx, child); err != nil {
		return err
	}
	if action == actionCreate {
		return w.create(ctx, owner, child, report)
	}
	setGeneration(child.Desired, owner)
	return Refused("applying", child.Desired, w.update(ctx, child, nil, report))
}

// An action is what has to be done for a child.
type action int

const (
	actionNone action = iota
	actionCreate
	actionDelete
	// actionUpdate: the desired state is not the one that was written last.
	actionUpdate
	// actionCompare: a field does not have the value that was written last.
	actionCompare
)

// action returns what has to be done for the child.
func (c *Child) action() (action, error) {
	switch {
	case c.Desired == nil && c.found:
		return actionDelete, nil
	case c.Desired == nil:
		return actionNone, nil
	}
	if err := setHash(c.Desired); err != nil {
		return actionNone, fmt.Errorf("hashing %s %q: %w", kindOf(c.Desired), c.Desired.GetName(), err)
	}
	switch {
	case !c.found:
		return actionCreate, nil
	case !hashMatches(c.Desired, c.Live):
		return actionUpdate, nil
	case c.wrongGeneration || !same(c.Desired, c.Live):
		return actionCompare, nil
	}
	return actionNone, nil
}

// observeUnchanged updates Memory for a child whose fields all have their desired values.
func (w Writer) observeUnchanged(child *Child) error {
	if child.Desired == nil {
		return nil
	}
	w.Memory.setRewrites(child.Live.GetUID(), nil)
	return w.Memory.stillContested(child.Live.GetUID())
}

func (w Writer) create(ctx context.Context, owner client.Object, child *Child, report *report) error {
	// A child that is absent has no annotation with the generation that it was deleted for.
	if w.hadChild(owner, child) {
		if err := w.checkOwnerLive(ctx, owner, child.Desired); err != nil {
			return err
		}
	}
	setGeneration(child.Desired, owner)
	created := child.Desired.DeepCopyObject().(client.Object)
	if err := w.Client.Create(ctx, created, client.FieldOwner(FieldManager)); err != nil {
		return Refused("creating", child.Desired, err)
	}
	if w.Created != nil {
		w.Created(created)
	}
	w.Memory.setCreated(owner.GetUID(), kindOf(created))
	child.Live, child.found = created, true
	w.recordRewrites(child, report)
	return nil
}

func (w Writer) delete(ctx context.Context, live client.Object) error {
	uid, version := live.GetUID(), live.GetResourceVersion()
	preconditions := client.Preconditions{UID: &uid, ResourceVersion: &version}
	err := w.Client.Delete(ctx, live, preconditions, client.PropagationPolicy(metav1.DeletePropagationBackground))
	return client.IgnoreNotFound(err)
}

// recordRewrites records the fields that differ in the response to a write as rewritten by
// admission: another write would have the same response.
func (w Writer) recordRewrites(child *Child, report *report) {
	rewrites := rewritesIn(child.Desired, child.Live)
	w.Memory.setWritten(child.Live.GetUID(), child.Desired)
	w.Memory.setRewrites(child.Live.GetUID(), rewrites)
	report.rewrites = append(report.rewrites, rewrites...)
	report.newRewrites = append(report.newRewrites, rewrites...)
}
