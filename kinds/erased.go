// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
)

// Erased is a Kind without its Go type, so that a list can have all kinds. Its functions are those
// of Kind; old may be nil. None of them is nil.
type Erased struct {
	GVK schema.GroupVersionKind
	// New returns an empty object of the kind.
	New       func() Object
	Default   func(obj, old Object, ops *patch.Ops)
	Stored    func(obj Object)
	Admit     func(obj, old Object, ops *patch.Ops) field.ErrorList
	Validate  func(obj Object) field.ErrorList
	Immutable func(obj, old Object) field.ErrorList
	Warn      func(obj, old Object, now time.Time) []string
}

// Pointer is a pointer to a kind's type.
type Pointer[T any] interface {
	*T
	Object
}

// Erase returns a kind without its type. A Kind without Stored or Admit has its Default there.
func Erase[T any, P Pointer[T]](k Kind[T]) *Erased {
	typed := func(obj Object) *T {
		pointer, _ := obj.(P) // It is nil if there is no object.
		return pointer
	}
	return &Erased{
		GVK:     k.GVK,
		New:     func() Object { return P(new(T)) },
		Default: func(obj, old Object, ops *patch.Ops) { k.Default(typed(obj), typed(old), ops) },
		Stored: func(obj Object) {
			if k.Stored != nil {
				k.Stored(typed(obj))
				return
			}
			k.Default(typed(obj), nil, nil)
		},
		Admit: func(obj, old Object, ops *patch.Ops) field.ErrorList {
			if k.Admit != nil {
				return k.Admit(typed(obj), typed(old), ops)
			}
			k.Default(typed(obj), typed(old), ops)
			return nil
		},
		Validate: func(obj Object) field.ErrorList { return k.Validate(typed(obj)) },
		Immutable: func(obj, old Object) field.ErrorList {
			if k.Immutable == nil {
				return nil
			}
			return k.Immutable(typed(obj), typed(old))
		},
		Warn: func(obj, old Object, now time.Time) []string { return k.Warn(typed(obj), typed(old), now) },
	}
}
