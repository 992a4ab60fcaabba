// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply writes children: the objects that an owner controls. It creates a child that
// does not exist, applies one whose observed state is not the desired state, deletes one that
// is no longer desired, and does not change objects of other owners.
//
// A child is created by a plain create, because a server-side apply would merge into an
// object of another owner that was created meanwhile. Every later write is a server-side
// apply with the uid and the resource version of the child as preconditions. The fields of a
// plain create belong to an Update entry of metadata.managedFields, from which an apply
// removes nothing, so this entry is changed into an Apply entry before the first apply
// (KEP-555 and k8s.io/client-go/util/csaupgrade).
//
// Whether a child has its desired state is found out field by field (compare.go), without a
// request. No annotation of a child is trusted in this.
package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/controller/limit"
)

// FieldManager is the field manager of all writes.
const FieldManager = api.FieldManager

// Writer writes the children of the objects of one kind.
type Writer struct {
	// Client reads from the cache and sees its own writes there.
	Client client.Client
	// Live reads a child from the API server before it is changed, with its managedFields, and
	// the owner of a child that was written for a newer generation than the one in the cache, or
	// that is created again.
	Live client.Reader
	// Recorder emits the events for repairs.
	Recorder events.EventRecorder
	// Rewrites prevents that writes are repeated in vain. It may be nil.
	Rewrites *Rewrites

	readOnly bool
}

// NewWriter returns a Writer with the clients of a manager.
func NewWriter(mgr manager.Manager) Writer {
	return Writer{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder(FieldManager), Rewrites: &Rewrites{}}
}

// ReadOnlyIf returns a Writer that, if paused, sends no request: where it would write, Apply
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
}

// Exists reports whether Apply left, or Observe found, the child.
func (c *Child) Exists() bool { return c.found }

// Apply creates, applies or deletes the children of owner so that they have their desired
// state, and fills in Live. All of them are read before any is written, so that one name
// conflict leaves all of them as they are. It emits an event for a repair, and returns which
// fields do not have their desired value because admission rewrote them, in a sentence that is
// empty if there are none.
//
// Errors: *ConflictError if a child's name is taken, *RefusedError if the API server refused
// a write, *limit.ContestedError if other clients undo its writes, ErrDeleting while an old child is
// being deleted, ErrOwnerGone if the owner was deleted, ErrPaused where ReadOnlyIf prevented a
// write; any other error is worth a retry.
func (w Writer) Apply(ctx context.Context, owner client.Object, children ...*Child) (rewritten string, err error) {
	for _, child := range children {
		if err := w.read(ctx, owner, child); err != nil {
			return "", err
		}
	}
	contested := limit.Contested(ctx)
	if contested != nil && contested.Exhausted && !w.readOnly {
		return "", contested
	}
	if err := w.checkGenerations(ctx, owner, children); err != nil {
		return "", err
	}
	if err := w.checkBeforeCreate(ctx, owner, children); err != nil {
		return "", err
	}
	var rewrites []string
	for _, child := range children {
		found, err := w.write(ctx, owner, child)
		if err != nil {
			w.Rewrites.set(owner, rewrites)
			return "", err
		}
		for i := range found {
			rewrites = append(rewrites, found[i].rewrite(child.Live))
		}
	}
	w.Rewrites.set(owner, rewrites)
	if contested != nil {
		return "", contested
	}
	return describe(rewrites), nil
}

// Observe fills Live with the children that owner controls, and empties the others. It is
// for an object whose children could not be applied: an object of the child's name that
// belongs to another owner does not count for the status, whatever /scale selects.
func (w Writer) Observe(ctx context.Context, owner client.Object, children ...*Child) error {
	for _, child := range children {
		err := w.Client.Get(ctx, client.ObjectKeyFromObject(owner), child.Live)
		child.found = err == nil && metav1.IsControlledBy(child.Live, owner)
		if !child.found {
			reflect.ValueOf(child.Live).Elem().SetZero()
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading %s %q: %w", kindOf(child.Live), owner.GetName(), err)
		}
	}
	return nil
}

func (w Writer) read(ctx context.Context, owner client.Object, child *Child) error {
	err := w.Client.Get(ctx, client.ObjectKeyFromObject(owner), child.Live)
	child.found = err == nil
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading %s %q: %w", kindOf(child.Live), owner.GetName(), err)
	case child.found && child.Live.GetSelfLink() == cache.TooLarge:
		return &RefusedError{Doing: "reading", Kind: kindOf(child.Live), Name: owner.GetName(), Err: cache.ErrTooLarge}
	case child.Desired == nil:
		child.found = child.found && metav1.IsControlledBy(child.Live, owner) && child.Live.GetDeletionTimestamp() == nil
		return nil
	case !child.found:
		return setHash(child.Desired)
	}
	if err := checkOwner(child.Live, child.Desired); err != nil {
		return err
	}
	if child.Keep != nil {
		if err := child.Keep(); err != nil {
			return err
		}
	}
	return setHash(child.Desired)
}

func (w Writer) checkGenerations(ctx context.Context, owner client.Object, children []*Child) error {
	for _, child := range children {
		if err := w.checkGeneration(ctx, owner, child); err != nil {
			return err
		}
	}
	return nil
}

// checkGeneration returns a *StaleError if the child was written for a newer generation of its
// owner than the one in the cache: such a cache must not revert it. Any client may edit the
// annotation, so the API server is asked for the owner; if it is not newer, the annotation has
// to be reverted.
func (w Writer) checkGeneration(ctx context.Context, owner client.Object, child *Child) error {
	// It is 0 if there is none, or no number.
	written, _ := strconv.ParseInt(child.Live.GetAnnotations()[AnnotationGeneration], 10, 64)
	if !child.found || written <= owner.GetGeneration() || w.readOnly {
		return nil
	}
	if child.Desired != nil && child.Desired.GetAnnotations()[AnnotationGeneration] != "" {
		return nil // It was found out already.
	}
	if err := w.checkLive(ctx, owner); err != nil {
		return err
	}
	if child.Desired != nil {
		setGeneration(child.Desired, owner)
	}
	return nil
}

// checkBeforeCreate asks the API server for the owner before a child is created that it had before, or that
// it lacks beside others: the garbage collector deletes children before a cache that is behind shows
// that their owner was deleted, and a child that is absent has no annotation with a generation. The
// children of a new owner are created without a read.
func (w Writer) checkBeforeCreate(ctx context.Context, owner client.Object, children []*Child) error {
	absent := func(c *Child) bool { return c.Desired != nil && !c.found }
	if w.readOnly || !slices.ContainsFunc(children, absent) {
		return nil
	}
	reported, ok := owner.(interface{ GetConditions() []metav1.Condition })
	if ok && len(reported.GetConditions()) > 0 || limit.Knows(ctx) || slices.ContainsFunc(children, (*Child).Exists) {
		return w.checkLive(ctx, owner)
	}
	return nil
}

// checkLive returns ErrOwnerGone if the owner was deleted, and a *StaleError if it has a newer
// generation than the one in the cache.
func (w Writer) checkLive(ctx context.Context, owner client.Object) error {
	live := newOf(owner)
	switch err := w.Live.Get(ctx, client.ObjectKeyFromObject(owner), live); {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading %s %q: %w", kindOf(owner), owner.GetName(), err)
	case err != nil || live.GetUID() != owner.GetUID() || live.GetDeletionTimestamp() != nil:
		return ErrOwnerGone
	case live.GetGeneration() > owner.GetGeneration():
		return &StaleError{Kind: kindOf(owner), Name: owner.GetName(), Newer: live.GetGeneration(), Cached: owner.GetGeneration()}
	}
	return nil
}

// write writes one child if it does not have its desired state, and returns the fields that
// admission rewrote.
func (w Writer) write(ctx context.Context, owner client.Object, child *Child) ([]difference, error) {
	switch {
	case child.Desired == nil && !child.found:
		return nil, nil
	case child.Desired != nil && child.found:
		if same(child.Desired, child.Live) {
			return nil, child.verified()
		}
		found := differences(child.Desired, child.Live)
		if len(w.Rewrites.without(owner, child.Live, found)) == 0 {
			return found, child.verified()
		}
	}
	switch {
	case w.readOnly:
		return nil, ErrPaused
	case child.Desired == nil:
		return nil, w.delete(ctx, child.Live)
	}
	if err := w.verify(ctx, child); err != nil {
		return nil, err
	}
	write := w.create
	if child.found {
		write = w.update
	}
	if err := write(ctx, owner, child); err != nil {
		return nil, err
	}
	return differences(child.Desired, child.Live), child.verified()
}

func (w Writer) create(ctx context.Context, owner client.Object, child *Child) error {
	setGeneration(child.Desired, owner)
	created := child.Desired.DeepCopyObject().(client.Object)
	if err := w.Client.Create(ctx, created, client.FieldOwner(FieldManager)); err != nil {
		return Refused("creating", child.Desired, err)
	}
	child.Live, child.found = created, true
	return nil
}

func (w Writer) delete(ctx context.Context, live client.Object) error {
	uid, version := live.GetUID(), live.GetResourceVersion()
	preconditions := client.Preconditions{UID: &uid, ResourceVersion: &version}
	err := w.Client.Delete(ctx, live, preconditions, client.PropagationPolicy(metav1.DeletePropagationBackground))
	return Refused("deleting", live, client.IgnoreNotFound(err))
}

// verify asks the API server, by a dry run, what it would store, and returns a *RefusedError if
// Child.Verify refuses that: the API server removes what it does not serve without an error, and
// pods must not start without it. It sends no request if the child has no Verify, or if Verify
// accepts what is stored already.
func (w Writer) verify(ctx context.Context, child *Child) error {
	if child.Verify == nil || child.found && child.Verify(child.Live) == nil {
		return nil
	}
	stored, err := w.dryRun(ctx, child)
	if apierrors.IsBadRequest(err) {
		return nil // A webhook does not support dry runs. What is stored is verified afterwards.
	}
	if err == nil {
		err = child.Verify(stored)
	}
	return Refused("applying", child.Desired, err)
}

// dryRun returns the child as the API server would store it. No read of the cache waits for the
// version in the response: nothing is stored.
func (w Writer) dryRun(ctx context.Context, child *Child) (stored client.Object, err error) {
	if !child.found {
		stored = child.Desired.DeepCopyObject().(client.Object)
		return stored, w.Client.Create(ctx, stored, client.DryRunAll, client.FieldOwner(FieldManager), client.DisableReadYourWritesConsistency)
	}
	content, err := contentOf(child.Desired)
	if err != nil {
		return nil, err
	}
	patch, err := json.Marshal([]operation{{Op: "replace", Path: "/spec", Value: content["spec"]}})
	if err != nil {
		return nil, err
	}
	stored = child.Live.DeepCopyObject().(client.Object)
	return stored, w.Client.Patch(ctx, stored, client.RawPatch(types.JSONPatchType, patch),
		client.DryRunAll, client.FieldOwner(FieldManager), client.DisableReadYourWritesConsistency)
}

// verified returns a *RefusedError if what is stored lacks what the child must not be without.
func (c *Child) verified() error {
	if c.Verify == nil {
		return nil
	}
	return Refused("applying", c.Desired, c.Verify(c.Live))
}

// newOf returns an empty object of the type of obj.
func newOf(obj client.Object) client.Object {
	return reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
}

// Rewrites holds, for each owner, which fields admission rewrote in the response to the last write
// of a child, so that this write is not repeated. It is empty after a restart, which costs one
// write for such a child. The zero value and nil are ready for use; nil holds nothing.
type Rewrites struct {
	of sync.Map // A []string by types.NamespacedName.
}

// without returns the differences of a child that the response to its last write did not have.
func (r *Rewrites) without(owner, live client.Object, found []difference) []difference {
	if r == nil {
		return found
	}
	known, _ := r.of.Load(client.ObjectKeyFromObject(owner))
	rewrites, _ := known.([]string)
	return slices.DeleteFunc(slices.Clone(found), func(d difference) bool { return slices.Contains(rewrites, d.rewrite(live)) })
}

func (r *Rewrites) set(owner client.Object, rewrites []string) {
	switch name := client.ObjectKeyFromObject(owner); {
	case r == nil:
	case len(rewrites) == 0:
		r.of.Delete(name)
	default:
		r.of.Store(name, rewrites)
	}
}

// Forget removes what is held of an owner that was deleted.
func (r *Rewrites) Forget(owner types.NamespacedName) { r.of.Delete(owner) }

// rewrite returns a sentence for a field that admission rewrote.
func (d *difference) rewrite(live client.Object) string {
	return fmt.Sprintf("%s %s rewritten by admission: %s -> %s", kindOf(live), d.field, encoded(d.want), encoded(d.have))
}

// describe returns the first sentences, shortened.
func describe(rewrites []string) string {
	const limit = 3
	var parts []string
	for _, sentence := range rewrites[:min(len(rewrites), limit)] {
		parts = append(parts, fmt.Sprintf("%.300s", sentence))
	}
	if more := len(rewrites) - limit; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// encoded returns a value in JSON, without quotes.
func encoded(value reflect.Value) string {
	if !value.IsValid() {
		return "nothing"
	}
	data, err := json.Marshal(value.Interface())
	if err != nil {
		return err.Error()
	}
	return cmp.Or(strings.Trim(string(data), `"`), "nothing")
}
