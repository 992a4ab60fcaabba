// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kinds is the domain: what each kind's defaults and rules are, in one package a kind, and
// what kinds share. All of it is pure: no client, no clock that it is not handed. Both processes
// and the command run it.
package kinds

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
)

// Kind is one kind at admission: pure functions whose arguments are everything that
// they need. They are called by many goroutines at once, each with objects of its own.
type Kind[T any] struct {
	// GVK names the kind, and with it the paths of its webhooks.
	GVK schema.GroupVersionKind

	// Default sets the defaults of obj and records them in ops, which may be nil. It
	// leaves alone what is set, except for a value that was derived from old and
	// follows its source. old is nil when an object is created, and when an object is
	// only read; it must not be changed. Default must be idempotent. Neither object
	// has a status, and only obj has managedFields and annotations, and only with old:
	// they show which values were derived and which a client set.
	Default func(obj, old *T, ops *patch.Ops)

	// Stored, if it is not nil, is Default of a stored object that is only read, in memory.
	Stored func(obj *T)

	// Admit, if it is not nil, is Default in the mutating webhook, which alone knows more than the
	// object: it also returns the errors that only this shows.
	Admit func(obj, old *T, ops *patch.Ops) field.ErrorList

	// Validate returns all errors of an object after Default, those of the schema's
	// bounds included. It changes nothing.
	Validate func(obj *T) field.ErrorList

	// Immutable returns the errors of an update that changes what cannot change. It may be nil.
	Immutable func(obj, old *T) field.ErrorList

	// Warn returns a sentence for each thing that is allowed but risky at this time in a valid
	// object, and in the change of old if that is not nil, of at most 120 characters; the API
	// server cuts longer ones. obj has managedFields and annotations as with Default.
	Warn func(obj, old *T, now time.Time) []string
}
