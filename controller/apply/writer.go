// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FieldManager owns, in metadata.managedFields, what this project writes.
const FieldManager = "modelbox-controller"

// Writer writes the children of one kind.
type Writer struct {
	// Client reads from the cache and sees its own writes there.
	Client client.Client
	// Live reads from the API server. It is asked only before the first change of
	// a child that has not changed since it was created, before a repair, before a child
	// is created again, and if the cache is behind.
	Live client.Reader
	// Fresh is told of what was created; it may be nil.
	Fresh *Fresh
	// Memory keeps reads and writes from being repeated; it may be nil.
	Memory *Memory
	// ReadOnly makes it write nothing: where it would write, it returns ErrPaused.
	ReadOnly bool
}

// Child is one child of an object.
type Child struct {
	// Live is filled with the child as it is; its type says what is read.
	Live client.Object
	// Desired is the child as it should be, TypeMeta included; nil if there should
	// be none.
	Desired client.Object
	// Name is the child's name, in the owner's namespace.
	Name string

	found bool
	// falseGeneration and falseHash say that another field manager changed the annotation.
	falseGeneration, falseHash bool
}

// Children makes the children of owner what they should be, and fills in Live.
// All are read before any is written, so that one name conflict keeps all of
// them as they are. It reports the writes that repaired a child, and the fields whose
// values admission rewrote.
//
// Errors: *ConflictError if a child's name is taken, *RefusedError if the API
// server refused a write, *ContestedError if another field manager undoes each repair,
// ErrDeleting while an old child is on its way out, ErrOwnerGone if the owner is,
// ErrPaused where ReadOnly kept it from a write; anything else is worth a retry.
// Result makes of them what a reconcile returns.
func (w Writer) Children(ctx context.Context, owner client.Object, children ...*Child) (Report, error) {
	var report Report
	for _, child := range children {
		if err := w.read(ctx, owner, child); err != nil {
			return report, err
		}
	}
	for _, child := range children {
		if err := w.checkGeneration(ctx, owner, child); err != nil {
			return report, err
		}
	}
	var contested error
	for _, child := range children {
		err := w.write(ctx, owner, child, &report)
		if _, ok := errors.AsType[*ContestedError](err); ok {
			contested = errors.Join(contested, err)
			continue
		}
		if err != nil {
			return report, err
		}
	}
	return report, contested
}

func (w Writer) read(ctx context.Context, owner client.Object, child *Child) error {
	key := types.NamespacedName{Namespace: owner.GetNamespace(), Name: child.Name}
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
	return checkOwner(child.Live, child.Desired)
}

func (w Writer) write(ctx context.Context, owner client.Object, child *Child, report *Report) error {
	due, err := child.due()
	if due == change && w.Memory.wasWritten(child.Live.GetUID(), child.Desired) {
		due, child.falseHash = comparing, true
	}
	switch {
	case err != nil:
		return err
	case due == nothing:
		return w.atRest(child)
	case due == comparing:
		return w.compare(ctx, owner, child, report)
	case w.ReadOnly:
		return ErrPaused
	case due == deletion:
		return Refused("deleting", child.Live, w.delete(ctx, child.Live))
	case due == creation:
		return w.create(ctx, owner, child, report)
	}
	setGeneration(child.Desired, owner)
	return Refused("applying", child.Desired, w.apply(ctx, child, nil, report))
}

// A due is the write that a child needs.
type due int

const (
	nothing due = iota
	creation
	deletion
	// change: another state is desired than the one that was written last.
	change
	// comparing: a field does not have the value that was written last.
	comparing
)

// due tells which write the child needs.
func (c *Child) due() (due, error) {
	switch {
	case c.Desired == nil && c.found:
		return deletion, nil
	case c.Desired == nil:
		return nothing, nil
	}
	if err := stamp(c.Desired); err != nil {
		return nothing, fmt.Errorf("hashing %s %q: %w", kindOf(c.Desired), c.Name, err)
	}
	switch {
	case !c.found:
		return creation, nil
	case !written(c.Desired, c.Live):
		return change, nil
	case c.falseGeneration || !same(c.Desired, c.Live):
		return comparing, nil
	}
	return nothing, nil
}

// atRest is for a child whose fields all have their desired values.
func (w Writer) atRest(child *Child) error {
	if child.Desired == nil {
		return nil
	}
	w.Memory.setEffective(child.Live.GetUID(), nil)
	return w.Memory.stillContested(child.Live.GetUID())
}

func (w Writer) create(ctx context.Context, owner client.Object, child *Child, report *Report) error {
	if w.hadChild(owner, child.Desired) {
		if _, err := w.readOwner(ctx, owner); err != nil {
			return err
		}
	}
	setGeneration(child.Desired, owner)
	answer := child.Desired.DeepCopyObject().(client.Object)
	if err := w.Client.Create(ctx, answer, client.FieldOwner(FieldManager)); err != nil {
		return Refused("creating", child.Desired, err)
	}
	w.Fresh.Add(answer)
	w.Memory.setCreated(owner.GetUID(), kindOf(answer))
	child.Live = answer
	w.settle(child, report)
	return nil
}

func (w Writer) delete(ctx context.Context, live client.Object) error {
	uid, version := live.GetUID(), live.GetResourceVersion()
	preconditions := client.Preconditions{UID: &uid, ResourceVersion: &version}
	err := w.Client.Delete(ctx, live, preconditions, client.PropagationPolicy(metav1.DeletePropagationBackground))
	return client.IgnoreNotFound(err)
}

// settle takes what still differs in the answer to a write for effective values: another
// write would bring the same answer.
func (w Writer) settle(child *Child, report *Report) {
	effective := effectiveIn(child.Desired, child.Live)
	w.Memory.setWritten(child.Live.GetUID(), child.Desired)
	w.Memory.setEffective(child.Live.GetUID(), effective)
	report.Effective = append(report.Effective, effective...)
	report.Rewritten = append(report.Rewritten, effective...)
}
