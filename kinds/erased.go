// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Erased is a Kind without its Go type, so that a list can have all kinds. Its functions are those
// of Kind; old may be nil. None of them is nil.
type Erased struct {
	GVK schema.GroupVersionKind
	// New returns an empty object of the kind.
	New func() Object
	// Current returns the kind with what it knows of the cluster now, for one admission.
	Current func() *Erased
	// SetDefaults sets the defaults of an object, which may update old: see Kind.SetDefaults.
	SetDefaults func(obj, old Object)
	// SetStored sets the defaults of an object as its controller sees it.
	SetStored func(obj Object)
	// Encoder returns what encodes as JSON the fields that the defaults of an object may set, which may
	// update old.
	Encoder   func(obj, old Object) func(obj Object) map[string]any
	Refuse    func(obj, old Object) field.ErrorList
	Validate  func(obj Object) field.ErrorList
	Immutable func(obj, old Object) field.ErrorList
	Warn      func(obj, old Object, now time.Time) []string
}

// Pointer is a pointer to a kind's type.
type Pointer[T any] interface {
	*T
	Object
}

// Erase returns a kind without its type.
func Erase[T any, P Pointer[T]](k Kind[T]) *Erased {
	typed := func(obj Object) *T {
		pointer, _ := obj.(P) // It is nil if there is no object.
		return pointer
	}
	errors := func(of func(obj, old *T) field.ErrorList) func(obj, old Object) field.ErrorList {
		if of == nil {
			return func(_, _ Object) field.ErrorList { return nil }
		}
		return func(obj, old Object) field.ErrorList { return of(typed(obj), typed(old)) }
	}
	erased := &Erased{
		GVK:         k.GVK,
		New:         func() Object { return P(new(T)) },
		SetDefaults: func(obj, old Object) { k.SetDefaults(typed(obj), typed(old)) },
		SetStored:   func(obj Object) { k.SetStored(typed(obj)) },
		Encoder: func(obj, old Object) func(Object) map[string]any {
			codec := k.Codec(typed(obj), typed(old))
			return func(obj Object) map[string]any { return codec.Spec(typed(obj)) }
		},
		Refuse:    errors(k.Refuse),
		Validate:  func(obj Object) field.ErrorList { return k.Validate(typed(obj)) },
		Immutable: errors(k.Immutable),
		Warn:      func(obj, old Object, now time.Time) []string { return k.Warn(typed(obj), typed(old), now) },
	}
	erased.Current = func() *Erased {
		if k.Current == nil {
			return erased
		}
		return Erase[T, P](k.Current())
	}
	return erased
}
