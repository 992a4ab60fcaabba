// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/modelbox-operator/modelbox-operator/kinds/fieldownership"
)

// SetDefaults sets the defaults of obj. stored is the object that it updates, nil for a new one; it
// is not changed. Both have the managedFields and annotations that say which fields clients have
// set.
//
// The spec is that of a new object with the fields that clients have set, whatever the object was
// before. There is one exception, so that pods restart only for a change of their own fields: an
// update that leaves the pod template as it is keeps every derived value that is stored, and adds
// none.
//
// A value is a derived one if it can be derived, and no client has set it. Without managedFields, that
// is not known: then it is a derived one if both objects have the same field of the spec, and a new
// object would have it too.
func (k *Kind[T]) SetDefaults(obj, stored *T) {
	if stored == nil || k.Update == nil {
		k.Default(obj)
		return
	}
	u := k.newUpdate(obj, stored)
	if k.Update.SamePods != nil {
		next := u.keep()
		seen := u.With(next, u.Spec(next))
		if k.SetStored(seen); k.Update.SamePods(seen, u.was) { // Otherwise the controller would add what admission has not.
			*obj = *next
			return
		}
	}
	*obj = *u.deriveAgain()
}

// SetStored sets the defaults of an object as its controller sees it.
func (k *Kind[T]) SetStored(obj *T) {
	if k.Stored != nil {
		k.Stored(obj)
		return
	}
	k.Default(obj)
}

// update is an update of an object whose defaults are set.
type update[T any] struct {
	*Kind[T]
	Codec[T]
	sent, stored *T
	// was is stored as its controller sees it.
	was *T
	// sentSpec and wasSpec are the specs of sent and was, which are not changed.
	sentSpec, wasSpec map[string]any
	// derived are the fields that can have derived values, and now and before the values of sent and
	// was there.
	derived     Fields
	now, before Leaves
	// owned are the paths of sent that clients have set, and ownedBefore those of stored, once they are
	// needed.
	owned, ownedBefore *fieldpath.Set
	// anew are what newSpec has returned.
	anew map[bool]map[string]any
}

func (k *Kind[T]) newUpdate(sent, stored *T) *update[T] {
	u := &update[T]{Kind: k, Codec: k.Codec(sent, stored), sent: sent, stored: stored, anew: map[bool]map[string]any{}}
	u.was = u.With(stored, u.Spec(stored))
	k.SetStored(u.was)
	u.sentSpec, u.wasSpec = u.Spec(sent), u.Spec(u.was)
	u.derived = k.Update.Derived(sent, u.was)
	u.now, u.before = u.derived.Of(u.sentSpec), u.derived.Of(u.wasSpec)
	u.owned = u.ownedBy(sent, &u.now)
	return u
}

// keep returns the object with the derived values that are stored, and with no others.
func (u *update[T]) keep() *T {
	spec := runtime.DeepCopyJSON(u.sentSpec)
	for _, leaf := range u.now.All {
		if u.Update.isAlways(leaf) && u.isDerived(leaf) {
			without(spec, leaf.Path, u.owned)
		}
	}
	for _, leaf := range u.before.All {
		if !u.Update.isAlways(leaf) && u.isMissing(leaf) && u.wasDerived(leaf) && !u.isRemoved(leaf) {
			with(spec, leaf.Path, runtime.DeepCopyJSONValue(leaf.Value))
		}
	}
	kept, next := u.derived.Of(spec), u.complete(spec)
	spec = u.Spec(next)
	added := u.derived.Of(spec)
	for _, leaf := range added.All {
		if !u.Update.isAlways(leaf) && u.isNew(leaf, &kept) {
			without(spec, leaf.Path, u.owned)
		}
	}
	return u.With(next, spec)
}

// isMissing reports whether sent lacks a value. A list of derived items is missing as a whole.
func (u *update[T]) isMissing(leaf *Leaf) bool {
	return !leaf.isEmpty() && u.now.At(leaf) == nil && (!leaf.isItem() || u.sentSpec[leaf.Top()] == nil)
}

// isNew reports whether a default is one that neither the kept values nor the stored ones have. Those
// in items belong to these.
func (u *update[T]) isNew(leaf *Leaf, kept *Leaves) bool {
	return !leaf.isInItem() && kept.At(leaf) == nil && u.before.At(leaf) == nil
}

// deriveAgain returns the object with the defaults of a new one that has what clients have set.
func (u *update[T]) deriveAgain() *T {
	spec := runtime.DeepCopyJSON(u.sentSpec)
	for _, leaf := range u.now.All {
		if u.isDerived(leaf) {
			without(spec, leaf.Path, u.owned)
		}
	}
	return u.complete(spec)
}

// complete returns the object with a spec and its defaults.
func (u *update[T]) complete(spec map[string]any) *T {
	next := u.With(u.sent, spec)
	if u.Update.Keep != nil {
		u.Update.Keep(next, u.sent, u.was)
	}
	u.Default(next)
	return next
}

// isDerived reports whether a value of sent is a derived one.
func (u *update[T]) isDerived(leaf *Leaf) bool {
	switch {
	case isManaged(u.sent):
		return !fieldownership.Has(u.owned, leaf.Path) && u.isPossible(leaf)
	case leaf.isInItem():
		return u.before.HasEqual(leaf) && u.isAnew(leaf)
	}
	return u.before.HasEqual(leaf) && u.isAnew(leaf) && isEqual(u.sentSpec[leaf.Top()], u.wasSpec[leaf.Top()])
}

func (u *update[T]) isPossible(leaf *Leaf) bool {
	return leaf.isEmpty() || u.Update.Possible == nil || u.Update.Possible(leaf, u.sent, u.was)
}

// wasDerived reports whether a value of stored, which sent does not have, is a derived one.
func (u *update[T]) wasDerived(leaf *Leaf) bool {
	if !isManaged(u.stored) {
		return u.isAnew(leaf)
	}
	if u.ownedBefore == nil {
		u.ownedBefore = u.ownedBy(u.stored, &u.before)
	}
	return !fieldownership.Has(u.ownedBefore, leaf.Path) && u.isPossible(leaf)
}

// isRemoved reports whether a value goes with the field of the spec that it is in: clients had set that,
// such as to {}, they do not any more, and a new object does not have it.
func (u *update[T]) isRemoved(leaf *Leaf) bool {
	if u.sentSpec[leaf.Top()] != nil || u.ownedBefore == nil || !fieldownership.Has(u.ownedBefore, leaf.Path[:1]) {
		return false
	}
	return u.Spec(u.deriveAgain())[leaf.Top()] == nil
}

// isAnew reports whether a new object with what of stored cannot be derived would have a value, or, if
// that is not in an item of a list, the field of the spec that it is in.
func (u *update[T]) isAnew(leaf *Leaf) bool {
	anew := u.newSpec(u.Update.isAlways(leaf))
	if leaf.isInItem() {
		values := u.derived.Of(anew)
		return values.HasEqual(leaf)
	}
	return isEqual(anew[leaf.Top()], u.wasSpec[leaf.Top()])
}

// newSpec returns the spec of a new object with what of stored cannot be derived, or with all but what
// is always derived again.
func (u *update[T]) newSpec(always bool) map[string]any {
	if u.anew[always] == nil {
		spec := runtime.DeepCopyJSON(u.wasSpec)
		for _, leaf := range u.before.All {
			if !always || u.Update.isAlways(leaf) {
				without(spec, leaf.Path, &fieldpath.Set{})
			}
		}
		next := u.With(u.was, spec)
		u.Default(next)
		u.anew[always] = u.Spec(next)
	}
	return u.anew[always]
}
