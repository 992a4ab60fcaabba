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
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/controller/limit"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/kinds"
)

// FieldManager is the field manager of all writes.
const FieldManager = api.FieldManager

// Writer writes the children of the objects of one kind.
type Writer struct {
	// Client reads from the cache and sees its own writes there.
	Client client.Client
	// Live reads a child from the API server before it is changed, with its managedFields, and the owner of a
	// child before it is written, except the children of a new owner.
	Live client.Reader
	// Recorder emits the events for repairs.
	Recorder events.EventRecorder
	// Rewrites prevents that writes are repeated in vain.
	Rewrites *Rewrites

	readOnly bool
}

// NewWriter returns a Writer with the clients of a manager.
func NewWriter(mgr manager.Manager) Writer {
	return Writer{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder(FieldManager), Rewrites: &Rewrites{}}
}

// ReadOnlyIf returns a Writer that, if paused, sends no request: where it would write, Apply
// returns the readiness of a paused object.
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
	// Keep change Desired, one after the other, to what is to stay as it is in Live, before the two are compared. They
	// are called if the child exists.
	Keep []func() error
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
// Errors: a status.Readiness if a child's name is taken, while an old child is being deleted, and where
// ReadOnlyIf prevented a write; *RefusedError if the API server refused a write, *limit.ContestedError if
// other clients undo its writes, ErrOwnerGone if the owner was deleted; any other error is worth a retry.
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
	if err := w.checkOwnerIsCurrent(ctx, owner, children); err != nil {
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
			child.Live = kinds.NewOf(child.Live)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading %s %q: %w", kinds.KindOf(child.Live), owner.GetName(), err)
		}
	}
	return nil
}

func (w Writer) read(ctx context.Context, owner client.Object, child *Child) error {
	err := w.Client.Get(ctx, client.ObjectKeyFromObject(owner), child.Live)
	child.found = err == nil
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading %s %q: %w", kinds.KindOf(child.Live), owner.GetName(), err)
	case child.found && child.Live.GetSelfLink() == cache.TooLarge:
		return &RefusedError{fmt.Errorf("reading %s %q: %w", kinds.KindOf(child.Live), owner.GetName(), cache.ErrTooLarge)}
	case child.Desired == nil:
		child.found = child.found && metav1.IsControlledBy(child.Live, owner) && child.Live.GetDeletionTimestamp() == nil
		return nil
	case !child.found:
		return setHash(child.Desired)
	}
	if err := checkOwner(child.Live, child.Desired); err != nil {
		return err
	}
	for _, keep := range child.Keep {
		if err := keep(); err != nil {
			return err
		}
	}
	return setHash(child.Desired)
}

// checkOwnerIsCurrent asks the API server for the owner before a child is created or deleted, see checkLive. The
// children of a new owner are created without a read: if they exist, a create fails. An owner is not new if it
// has conditions, some child, or writes that the limiter knows.
func (w Writer) checkOwnerIsCurrent(ctx context.Context, owner client.Object, children []*Child) error {
	asDesired := func(c *Child) bool { return c.found == (c.Desired != nil) }
	if w.readOnly || !slices.ContainsFunc(children, func(c *Child) bool { return !asDesired(c) }) {
		return nil
	}
	reported, ok := owner.(interface{ GetConditions() []metav1.Condition })
	if ok && len(reported.GetConditions()) > 0 || limit.Knows(ctx) || slices.ContainsFunc(children, (*Child).Exists) {
		return w.checkLive(ctx, owner)
	}
	return nil
}

// checkLive returns ErrOwnerGone if the owner was deleted, and ErrStale if it has a newer generation than the
// one in the cache. A cache that is behind must not revert children, nor create them again after the
// garbage collector has deleted them.
func (w Writer) checkLive(ctx context.Context, owner client.Object) error {
	live := kinds.NewOf(owner)
	switch err := w.Live.Get(ctx, client.ObjectKeyFromObject(owner), live); {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading %s %q: %w", kinds.KindOf(owner), owner.GetName(), err)
	case err != nil || live.GetUID() != owner.GetUID() || live.GetDeletionTimestamp() != nil:
		return ErrOwnerGone
	case live.GetGeneration() > owner.GetGeneration():
		return fmt.Errorf("the children of %s %q are not written: it has generation %d, but %w %d",
			kinds.KindOf(owner), owner.GetName(), live.GetGeneration(), ErrStale, owner.GetGeneration())
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
		found := differences(child.Desired, child.Live)
		if len(w.Rewrites.without(owner, child.Live, found)) == 0 {
			return found, child.verified()
		}
	}
	switch {
	case w.readOnly:
		return nil, status.Readiness{Reason: status.ReasonPaused, Message: "spec.paused is true: changes are not written"}
	case child.Desired == nil:
		return nil, w.delete(ctx, child.Live)
	}
	if err := w.verify(ctx, child); err != nil {
		return nil, err
	}
	if err := w.createOrUpdate(ctx, owner, child); err != nil {
		return nil, err
	}
	return differences(child.Desired, child.Live), child.verified()
}

func (w Writer) createOrUpdate(ctx context.Context, owner client.Object, child *Child) error {
	if child.found {
		return w.update(ctx, owner, child)
	}
	created := child.Desired.DeepCopyObject().(client.Object)
	if err := w.Client.Create(ctx, created, client.FieldOwner(FieldManager)); err != nil {
		return Refused("creating", child.Desired, err)
	}
	child.Live, child.found = created, true
	return nil
}

// update applies a child as it is in the API server, and not only in the cache. It emits an event
// if another client changed what was written last.
func (w Writer) update(ctx context.Context, owner client.Object, child *Child) error {
	live := kinds.NewOf(child.Live)
	if err := w.Live.Get(ctx, client.ObjectKeyFromObject(owner), live); err != nil {
		return fmt.Errorf("reading %s %q: %w", kinds.KindOf(live), owner.GetName(), err)
	}
	if err := checkOwner(live, child.Desired); err != nil {
		return err
	}
	child.Live = live
	found := w.Rewrites.without(owner, live, differences(child.Desired, live))
	if len(found) == 0 {
		return nil
	}
	// After the child was read: one that another leader writes from now on causes a conflict.
	if err := w.checkLive(ctx, owner); err != nil {
		return err
	}
	drifted := live.GetAnnotations()[AnnotationHash] == child.Desired.GetAnnotations()[AnnotationHash]
	manager := limit.Manager(live)
	replaced, err := w.repair(ctx, child)
	if contested, ok := errors.AsType[*limit.ContestedError](err); ok {
		limit.Blame(ctx, contested, found[0].field, manager)
	}
	if err != nil {
		return Refused("applying", child.Desired, err)
	}
	for _, after := range differences(child.Desired, child.Live) {
		found = slices.DeleteFunc(found, func(before difference) bool { return before.field == after.field })
	}
	if drifted && len(found) > 0 {
		w.Recorder.Eventf(owner, nil, corev1.EventTypeNormal, "Repaired", "Apply", "%s %q: reverted %s, modified by %s%s",
			kinds.KindOf(live), owner.GetName(), found[0].field, limit.Describe(manager), replaced)
	}
	return nil
}

// repair writes the desired fields of the live child by a forced server-side apply. An apply
// keeps the fields of other managers, and with them the object may be invalid: a second source of
// a volume, a second port of one name. Nor can it remove a value that the desired state leaves
// unset. Then one JSON patch sets and removes what differs. It returns, for an event, the lists
// that the patch replaced.
func (w Writer) repair(ctx context.Context, child *Child) (replaced string, err error) {
	err = w.serverSideApply(ctx, child)
	found := differences(child.Desired, child.Live)
	switch {
	case err == nil:
		// A value that was applied and is not in the response was rewritten by admission.
		found = slices.DeleteFunc(found, func(d difference) bool { return d.want.IsValid() })
	case !apierrors.IsInvalid(err):
		return "", err
	}
	if len(found) == 0 {
		return "", err
	}
	patch, replaced, patchErr := jsonPatch(child.Live, found)
	if patchErr != nil {
		return "", patchErr
	}
	patchErr = w.Client.Patch(ctx, child.Live, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(FieldManager))
	switch {
	case apierrors.IsInvalid(patchErr) && err != nil:
		return "", err
	case patchErr != nil || err == nil:
		return replaced, patchErr
	}
	return replaced, w.serverSideApply(ctx, child) // It removes fields that are no longer desired.
}

// jsonPatch returns a JSON patch of live that sets and removes what differs, with its
// resourceVersion as precondition.
func jsonPatch(live client.Object, found []difference) (patch []byte, replaced string, err error) {
	// A patch of a list makes the paths into it invalid, so it comes after these.
	slices.SortStableFunc(found, func(a, b difference) int {
		return cmp.Or(cmp.Compare(len(b.operation.Path), len(a.operation.Path)), cmp.Compare(a.operation.Path, b.operation.Path))
	})
	operations := []operation{{Op: "test", Path: "/metadata/resourceVersion", Value: live.GetResourceVersion()}}
	for i := range found {
		if o := found[i].operation; o.Path != operations[len(operations)-1].Path {
			operations = append(operations, o)
			if found[i].list != "" {
				replaced += fmt.Sprintf("; replaced %s, with what other field managers added there", found[i].list)
			}
		}
	}
	patch, err = json.Marshal(operations)
	return patch, replaced, err
}

// serverSideApply applies a child to the version that was read. If it has changed since, or was
// replaced, the API server returns a conflict.
func (w Writer) serverSideApply(ctx context.Context, child *Child) error {
	if err := w.upgradeManagedFields(ctx, child.Live); err != nil {
		return err
	}
	versioned := child.Desired.DeepCopyObject().(client.Object)
	versioned.SetUID(child.Live.GetUID())
	versioned.SetResourceVersion(child.Live.GetResourceVersion())
	configuration, err := kinds.ApplyConfiguration(versioned)
	if err != nil {
		return err
	}
	// A response keeps, in the lists that it is decoded into, what it does not have itself.
	stored := kinds.NewOf(versioned)
	stored.SetNamespace(versioned.GetNamespace())
	stored.SetName(versioned.GetName())
	err = w.Client.Patch(ctx, stored, client.RawPatch(types.ApplyPatchType, configuration), client.FieldOwner(FieldManager), client.ForceOwnership)
	if err != nil {
		return err
	}
	child.Live = stored
	return nil
}

// upgradeManagedFields changes the Update entry of a plain create, or of a JSON patch, into an
// Apply entry. There is no patch if there is no such entry.
func (w Writer) upgradeManagedFields(ctx context.Context, live client.Object) error {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(FieldManager), FieldManager)
	if err != nil || patch == nil {
		return err
	}
	return w.Client.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch))
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
	content, err := kinds.Content(child.Desired)
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

// AnnotationHash holds, on each child, the hash of the desired state that was written last.
// A field that is no longer desired is noticed by it: a comparison alone cannot tell such a
// field from one that another field manager set.
const AnnotationHash = "model.github.com/desired-hash"

// setHash writes the hash of a desired object into its annotations.
func setHash(desired client.Object) error {
	encoder, ok := desired.(marshaler)
	if !ok {
		encoder = untyped{desired}
	}
	hash, err := Hash(encoder)
	if err != nil {
		return fmt.Errorf("hashing %s %q: %w", kinds.KindOf(desired), desired.GetName(), err)
	}
	desired.SetAnnotations(labels.Merge(desired.GetAnnotations(), labels.Set{AnnotationHash: hash}))
	return nil
}

// Hash returns the hash of an object in protobuf, which encodes equal objects equally. It must stay the same in
// all versions of the controller: another one would write all children again after an upgrade.
func Hash(object marshaler) (string, error) {
	data, err := object.Marshal()
	sum := fnv.New64a()
	_, _ = sum.Write(data) // A hash returns no error.
	return fmt.Sprintf("%016x", sum.Sum64()), err
}

type marshaler interface{ Marshal() ([]byte, error) }

// untyped is the encoding of an object of a kind that has no Go type here: its JSON, with sorted keys.
type untyped struct{ client.Object }

func (u untyped) Marshal() ([]byte, error) { return json.Marshal(u.Object) }

// Rewrites holds, for each owner, which fields admission rewrote in the response to the last write
// of a child, so that this write is not repeated. It is empty after a restart, which costs one
// write for such a child. The zero value is ready for use.
type Rewrites struct {
	of sync.Map // A []string by types.NamespacedName.
}

// without returns the differences of a child that the response to its last write did not have.
func (r *Rewrites) without(owner, live client.Object, found []difference) []difference {
	known, _ := r.of.Load(client.ObjectKeyFromObject(owner))
	rewrites, _ := known.([]string)
	return slices.DeleteFunc(slices.Clone(found), func(d difference) bool { return slices.Contains(rewrites, d.rewrite(live)) })
}

func (r *Rewrites) set(owner client.Object, rewrites []string) {
	if len(rewrites) == 0 {
		r.Forget(client.ObjectKeyFromObject(owner))
		return
	}
	r.of.Store(client.ObjectKeyFromObject(owner), rewrites)
}

// Forget removes what is held of an owner that was deleted.
func (r *Rewrites) Forget(owner types.NamespacedName) { r.of.Delete(owner) }

// rewrite returns a sentence for a field that admission rewrote.
func (d *difference) rewrite(live client.Object) string {
	return fmt.Sprintf("%s %s rewritten by admission: %s -> %s", kinds.KindOf(live), d.field, encoded(d.want), encoded(d.have))
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

// checkOwner returns a status.Readiness unless the owner of the desired child controls live. An object of another owner is never
// adopted, changed or deleted. A child that is being deleted is created afterwards; the watch event of the deletion starts
// that reconcile.
func checkOwner(live, desired client.Object) error {
	const deleting = "waiting for the deletion of an old object: %s %q is "
	owner := metav1.GetControllerOfNoCopy(desired)
	switch controller := metav1.GetControllerOfNoCopy(live); {
	case controller == nil:
	case controller.UID == owner.UID && live.GetDeletionTimestamp() == nil:
		return nil
	case controller.UID == owner.UID:
		return status.NewReconciling(status.ReasonWaitingForDeletion, fmt.Sprintf(deleting+"being deleted", kinds.KindOf(live), live.GetName()))
	case controller.Name == owner.Name && groupKind(controller) == groupKind(owner): // The garbage collector deletes its children.
		return status.NewReconciling(status.ReasonWaitingForDeletion, fmt.Sprintf(
			deleting+"controlled by a deleted %s of this name and waits for garbage collection", kinds.KindOf(live), live.GetName(), controller.Kind))
	}
	return status.NewStalled(status.ReasonNameConflict, kinds.NameConflict(live))
}

func groupKind(reference *metav1.OwnerReference) schema.GroupKind {
	return schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).GroupKind()
}

// ErrOwnerGone reports that an object which is still in the cache was deleted, or replaced by
// another object of its name. Nothing is written for it, and nothing is retried: the watch event
// of the deletion follows.
var ErrOwnerGone = errors.New("the object has been deleted")

// ErrStale reports that there is a newer generation of an owner than the one in the informer
// cache. Its children are not written; the reconcile is retried until the cache is up to date.
var ErrStale = errors.New("the informer cache still has generation")

// RefusedError reports that the API server refused to write a child, with the API server's
// message: a quota, a policy, missing rights, an invalid value.
type RefusedError struct{ error }

// Unwrap returns the error in the API server's response.
func (e *RefusedError) Unwrap() error { return e.error }

// Refused wraps the error of a write. An error that a retry may resolve is not a refusal, unless it
// lasts: a conflict, a timeout, an overloaded API server, a child that is not in the cache yet, or
// one that was deleted meanwhile.
func Refused(doing string, obj client.Object, err error) error {
	if err == nil {
		return nil
	}
	described := fmt.Errorf("%s %s %q: %w", doing, kinds.KindOf(obj), obj.GetName(), err)
	_, lasting := errors.AsType[*limit.LastingError](err)
	if !lasting && (isTransient(err) || apierrors.IsNotFound(err) && doing != "creating") {
		return described
	}
	return &RefusedError{described}
}

// isTransient reports whether the error is one of the network, or a response that a retry may change. It goes by the code:
// the responses of a proxy or a load balancer have no reason, nor have some of the API server, such as the
// 500 for a list with the same key twice, which stays.
func isTransient(err error) bool {
	var response apierrors.APIStatus
	if !errors.As(err, &response) {
		return true
	}
	switch response.Status().Code {
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true // A conflict is also a child that exists already.
	}
	return apierrors.IsServerTimeout(err)
}

// ReadinessOf returns the readiness of an owner whose children could not be built or
// applied because of err, nil if err has no meaning for its status, and the error that is
// to be retried. What ends with a watch event, such as a name conflict or the deletion of
// an old child, is not retried. Result turns the error into the result of a reconcile.
func ReadinessOf(err error) (*status.Readiness, error) {
	readiness, known := errors.AsType[status.Readiness](err)
	contested, isContested := errors.AsType[*limit.ContestedError](err)
	refused, isRefused := errors.AsType[*RefusedError](err)
	switch {
	case known:
		err = nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		readiness, err = status.NewStalled(status.ReasonTerminating, "the namespace is being deleted: no object can be created in it"), nil
	case isContested:
		readiness = status.NewStalled(status.ReasonContested, contested.Error())
	case isRefused:
		readiness = status.NewStalled(status.ReasonChildRefused, refused.Error())
	default:
		return nil, err
	}
	return &readiness, err
}

// Result returns the result of a reconcile for an error of Apply: the owner of a contested
// child is reconciled again after RetryAfter, a deleted owner is not, and any other error is
// retried with back-off.
func Result(err error) (reconcile.Result, error) {
	var contested *limit.ContestedError
	switch {
	case errors.Is(err, ErrOwnerGone):
		return reconcile.Result{}, nil
	case errors.As(err, &contested):
		return reconcile.Result{RequeueAfter: contested.RetryAfter}, nil
	}
	return reconcile.Result{}, err
}
