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
)

// Kind is one kind at admission: pure functions whose arguments are everything that
// they need. They are called by many goroutines at once, each with objects of its own. No object
// has a status.
type Kind[T any] struct {
	// GVK names the kind, and with it the paths of its webhooks.
	GVK schema.GroupVersionKind

	// Current returns the kind with what it knows of the cluster now, for one admission. It may be nil.
	Current func() Kind[T]

	// Default sets the defaults of a new object, and is idempotent. It leaves alone what is set.
	Default func(obj *T)

	// Stored sets the defaults of an object as it is stored, in memory. If it is nil, Default does.
	Stored func(obj *T)

	// Codec returns what encodes the fields that the defaults of an object may set, which may update
	// stored. stored is nil for a new object.
	Codec func(sent, stored *T) Codec[T]

	// Update is what an update of an object needs beside Default. It may be nil.
	Update *Update[T]

	// Refuse returns the errors of an object with its defaults that only the mutating webhook shows,
	// which knows more than the object. It may be nil.
	Refuse func(obj, old *T) field.ErrorList

	// Validate returns all errors of an object with its defaults, those of the schema's
	// bounds included. It changes nothing.
	Validate func(obj *T) field.ErrorList

	// Immutable returns the errors of an update that changes what cannot change. It may be nil.
	Immutable func(obj, old *T) field.ErrorList

	// Warn returns a sentence for each thing that is allowed but risky at this time in a valid
	// object, and in the change of old if that is not nil, of at most 120 characters; the API
	// server cuts longer ones. obj has managedFields and annotations as with SetDefaults.
	Warn func(obj, old *T, now time.Time) []string
}

// Update is what the defaults of an update need beside Kind.Default: see Kind.SetDefaults. sent is the
// object as the client sent it, and stored the stored one as its controller sees it.
type Update[T any] struct {
	// Derived returns the fields that can have derived values.
	Derived func(sent, stored *T) Fields
	// Possible reports whether a value in these fields can be a derived one: another one is of another
	// webhook. If it is nil, each can.
	Possible func(leaf *Leaf, sent, stored *T) bool
	// Always is one of the fields that no pod is made of, and that is always derived again.
	Always string
	// Keep sets in obj what stays, before its defaults are set. It may be nil.
	Keep func(obj, sent, stored *T)
	// SamePods reports whether an update leaves the pod template as it is. It may be nil: then all
	// values are always derived again.
	SamePods func(obj, stored *T) bool
}

func (u *Update[T]) isAlways(leaf *Leaf) bool { return leaf.Top() == u.Always }
