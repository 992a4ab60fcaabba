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

// AnnotationGeneration holds, on each child, the generation of the owner for which the child
// was written last. A controller whose cache has an older generation of the owner, such as
// one that lists from an API server which is behind, must not revert the child to it. The
// annotation is written together with other changes only, and is not part of the hash.
const AnnotationGeneration = "model.github.com/owner-generation"

// StaleError reports that there is a newer generation of the owner of a child than the one in
// the informer cache. The reconcile is retried until the cache is up to date.
type StaleError struct {
	// Kind and Name are those of the child, which was not written.
	Kind, Name string
	// Newer is the generation of the owner that the child was written for, or that the API
	// server has; Cached is the one in the cache.
	Newer, Cached int64
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("%s %q is not written: its owner has generation %d, but the informer cache still has generation %d",
		e.Kind, e.Name, e.Newer, e.Cached)
}

func setGeneration(desired, owner client.Object) {
	annotations := desired.GetAnnotations()
	annotations[AnnotationGeneration] = strconv.FormatInt(owner.GetGeneration(), 10)
	desired.SetAnnotations(annotations)
}

// newerThan returns the generation of the owner that a child was written for, and reports
// whether it is newer than that of owner. The annotation of a child that a predecessor of
// the owner controls is ignored, and so is one that is not a number.
func newerThan(owner, live client.Object) (written int64, newer bool) {
	text, ok := live.GetAnnotations()[AnnotationGeneration]
	if !ok || !metav1.IsControlledBy(live, owner) {
		return 0, false
	}
	written, err := strconv.ParseInt(text, 10, 64)
	return written, err == nil && written > owner.GetGeneration()
}

// checkGeneration returns a *StaleError if the child was written for a newer generation of
// its owner. The annotation alone is no proof, because any client may edit a child, so the
// owner is read from the API server. If it is not newer, the annotation is wrong and has to
// be reverted.
func (w Writer) checkGeneration(ctx context.Context, owner client.Object, child *Child) error {
	_, newer := newerThan(owner, child.Live)
	if !child.found || !newer {
		return nil
	}
	if err := w.checkOwnerLive(ctx, owner, child.Live); err != nil {
		return err
	}
	child.wrongGeneration = true
	return nil
}

// checkOwnerLive reads the owner of a child from the API server. It returns ErrOwnerGone if the
// owner was deleted, and a *StaleError if it has a newer generation than the one in the cache.
func (w Writer) checkOwnerLive(ctx context.Context, owner, child client.Object) error {
	live, err := w.readOwner(ctx, owner)
	if err != nil {
		return err
	}
	if live.GetGeneration() > owner.GetGeneration() {
		return &StaleError{Kind: kindOf(child), Name: owner.GetName(), Newer: live.GetGeneration(), Cached: owner.GetGeneration()}
	}
	return nil
}

// readOwner reads the owner from the API server. It returns ErrOwnerGone if the owner was
// deleted, or replaced by another object of its name.
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

// hadChild reports whether the owner may have had a child of this kind before: another child
// exists, its status was written, or this process created the child. It returns false for a new
// object, for which no request is sent.
func (w Writer) hadChild(owner client.Object, child *Child) bool {
	if child.hasSibling || w.Memory.wasCreated(owner.GetUID(), kindOf(child.Desired)) {
		return true
	}
	reported, ok := owner.(interface{ GetConditions() []metav1.Condition })
	return ok && len(reported.GetConditions()) > 0
}
