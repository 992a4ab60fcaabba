// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"reflect"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AnnotationGeneration holds, on each child, the generation of the owner for which it
// was written last. A controller whose cache shows an older generation of the owner, such
// as one that lists from an API server which is behind, must not take the child back to it.
// It is written with other changes only, and is not part of the hash.
const AnnotationGeneration = "model.github.com/owner-generation"

// StaleError says that a child was written for a newer generation of its owner than the
// one that the cache shows. It is retried until the cache has caught up.
type StaleError struct {
	// Kind and Name are those of the child.
	Kind, Name string
	// Written and Seen are the generations of the owner.
	Written, Seen int64
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("%s %q was written for generation %d of its owner, and the cache still shows generation %d",
		e.Kind, e.Name, e.Written, e.Seen)
}

func setGeneration(desired, owner client.Object) {
	annotations := desired.GetAnnotations()
	annotations[AnnotationGeneration] = strconv.FormatInt(owner.GetGeneration(), 10)
	desired.SetAnnotations(annotations)
}

// newerThan returns the generation that a child of the owner was written for, if that is
// newer than the owner's. Those of a predecessor count for nothing, nor does what is no
// number.
func newerThan(owner, live client.Object) (written int64, newer bool) {
	text, ok := live.GetAnnotations()[AnnotationGeneration]
	if !ok || !metav1.IsControlledBy(live, owner) {
		return 0, false
	}
	written, err := strconv.ParseInt(text, 10, 64)
	return written, err == nil && written > owner.GetGeneration()
}

// checkGeneration returns a *StaleError if the child was written for a newer generation
// of its owner. The annotation alone is no proof, for anyone may edit a child: so the
// owner is read from the API server. If it is not newer, the annotation is false, and has
// to be written again.
func (w Writer) checkGeneration(ctx context.Context, owner client.Object, child *Child) error {
	written, newer := newerThan(owner, child.Live)
	if !child.found || !newer {
		return nil
	}
	live, err := w.readOwner(ctx, owner)
	if err != nil {
		return err
	}
	if live.GetGeneration() > owner.GetGeneration() {
		return &StaleError{Kind: kindOf(child.Live), Name: owner.GetName(), Written: written, Seen: owner.GetGeneration()}
	}
	child.falseGeneration = true
	return nil
}

// readOwner reads the owner from the API server: ErrOwnerGone if it was deleted, or
// replaced by another object of its name.
func (w Writer) readOwner(ctx context.Context, owner client.Object) (client.Object, error) {
	live := reflect.New(reflect.TypeOf(owner).Elem()).Interface().(client.Object)
	err := w.Live.Get(ctx, client.ObjectKeyFromObject(owner), live)
	switch {
	case apierrors.IsNotFound(err):
		return nil, ErrOwnerGone
	case err != nil:
		return nil, fmt.Errorf("reading %s %q: %w", kindOf(owner), owner.GetName(), err)
	case live.GetUID() != owner.GetUID() || live.GetDeletionTimestamp() != nil:
		return nil, ErrOwnerGone
	}
	return live, nil
}

// hadChild tells whether the owner may have had a child of that kind before: a status
// was written for it, or the child was created by this process. It is false for a new
// object, for which nothing is read.
func (w Writer) hadChild(owner, child client.Object) bool {
	if w.Memory.wasCreated(owner.GetUID(), kindOf(child)) {
		return true
	}
	reported, ok := owner.(interface{ GetConditions() []metav1.Condition })
	return ok && len(reported.GetConditions()) > 0
}
