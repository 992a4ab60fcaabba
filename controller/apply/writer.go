// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FieldManager owns, in metadata.managedFields, what this project writes.
const FieldManager = "modelbox-controller"

// Writer writes the children of one kind.
type Writer struct {
	// Client reads from the cache and sees its own writes there.
	Client client.Client
	// Live reads from the API server. It is asked only before the first change of
	// a child that has not changed since it was created.
	Live client.Reader
	// Fresh is told of what was created; it may be nil.
	Fresh *Fresh
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
}

// Children makes the children of owner what they should be, and fills in Live.
// All are read before any is written, so that one name conflict keeps all of
// them as they are. It reports the writes that mended a child which had been
// right before.
//
// Errors: *ConflictError if a child's name is taken, *RefusedError if the API
// server refused a write, ErrDeleting while an old child is on its way out,
// ErrPaused where ReadOnly kept it from a write; anything else is worth a retry.
func (w Writer) Children(ctx context.Context, owner client.Object, children ...*Child) ([]Repair, error) {
	for _, child := range children {
		if err := w.read(ctx, owner, child); err != nil {
			return nil, err
		}
	}
	var repairs []Repair
	for _, child := range children {
		repair, err := w.write(ctx, child)
		if err != nil {
			return repairs, err
		}
		if repair != nil {
			repairs = append(repairs, *repair)
		}
	}
	return repairs, nil
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
	return checkOwner(child.Live, owner)
}

func (w Writer) write(ctx context.Context, child *Child) (*Repair, error) {
	write, field, err := child.due()
	switch {
	case err != nil || write == nothing:
		return nil, err
	case w.ReadOnly:
		return nil, ErrPaused
	case write == deletion:
		return nil, Refused("deleting", child.Live, w.delete(ctx, child.Live))
	case write == creation:
		return nil, Refused("creating", child.Desired, w.create(ctx, child))
	}
	repair := repaired(child, field)
	return repair, Refused("applying", child.Desired, w.apply(ctx, child))
}

// A due is the write that a child needs.
type due int

const (
	nothing due = iota
	creation
	change
	deletion
)

// due tells which write the child needs, and for a change the first field that
// differs.
func (c *Child) due() (due, string, error) {
	switch {
	case c.Desired == nil && c.found:
		return deletion, "", nil
	case c.Desired == nil:
		return nothing, "", nil
	}
	if err := stamp(c.Desired); err != nil {
		return nothing, "", fmt.Errorf("hashing %s %q: %w", kindOf(c.Desired), c.Name, err)
	}
	if !c.found {
		return creation, "", nil
	}
	field := differs(c.Desired, c.Live)
	if field == "" {
		return nothing, "", nil
	}
	return change, field, nil
}

func (w Writer) create(ctx context.Context, child *Child) error {
	if err := w.Client.Create(ctx, child.Desired, client.FieldOwner(FieldManager)); err != nil {
		return err
	}
	w.Fresh.Add(child.Desired)
	child.Live = child.Desired
	return nil
}

func (w Writer) delete(ctx context.Context, live client.Object) error {
	uid, version := live.GetUID(), live.GetResourceVersion()
	preconditions := client.Preconditions{UID: &uid, ResourceVersion: &version}
	err := w.Client.Delete(ctx, live, preconditions, client.PropagationPolicy(metav1.DeletePropagationBackground))
	return client.IgnoreNotFound(err)
}

func (w Writer) apply(ctx context.Context, child *Child) error {
	if createdByUs(child.Live) {
		if err := w.takeOver(ctx, child.Live); err != nil {
			return err
		}
	}
	child.Desired.SetUID(child.Live.GetUID())
	configuration, err := applyConfiguration(child.Desired)
	if err != nil {
		return err
	}
	if err := w.Client.Apply(ctx, configuration, client.FieldOwner(FieldManager), client.ForceOwnership); err != nil {
		return err
	}
	return w.answer(configuration, child)
}

// answer fills Live with the API server's answer to an apply.
func (w Writer) answer(configuration runtime.ApplyConfiguration, child *Child) error {
	fresh, err := w.Client.Scheme().New(child.Desired.GetObjectKind().GroupVersionKind())
	if err != nil {
		return err
	}
	child.Live = fresh.(client.Object)
	return convert(configuration, fresh)
}

// takeOver turns the Update entry that our create left into an Apply entry. It
// reads the live object, because the cache holds no field sets.
func (w Writer) takeOver(ctx context.Context, cached client.Object) error {
	live, ok := cached.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is not a client.Object", cached)
	}
	if err := w.Live.Get(ctx, client.ObjectKeyFromObject(cached), live); err != nil {
		return err
	}
	if live.GetUID() != cached.GetUID() {
		return apierrors.NewConflict(resourceOf(cached), cached.GetName(), fmt.Errorf("it was replaced by another object of that name"))
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(FieldManager), FieldManager)
	if err != nil || patch == nil {
		return err
	}
	return w.Client.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch))
}

// applyConfiguration is the apply configuration of a desired object. What the
// Go type cannot leave out, its status, goes.
func applyConfiguration(desired client.Object) (runtime.ApplyConfiguration, error) {
	switch desired := desired.(type) {
	case *appsv1.Deployment:
		configuration := &appsv1ac.DeploymentApplyConfiguration{}
		err := convert(desired, configuration)
		configuration.Status = nil
		return configuration, err
	case *appsv1.DaemonSet:
		configuration := &appsv1ac.DaemonSetApplyConfiguration{}
		err := convert(desired, configuration)
		configuration.Status = nil
		return configuration, err
	case *corev1.Service:
		configuration := &corev1ac.ServiceApplyConfiguration{}
		err := convert(desired, configuration)
		configuration.Status = nil
		return configuration, err
	}
	return nil, fmt.Errorf("no apply configuration is known for %T", desired)
}

func convert(from, to any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}
