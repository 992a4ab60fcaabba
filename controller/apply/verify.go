// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// verify asks the API server, by a dry run, what it would store, and returns a *RefusedError if
// Child.Verify refuses that: the API server removes what it does not serve without an error, and
// pods must not start without it. It sends no request if the child has no Verify, or if Verify
// accepts what is stored already.
func (w Writer) verify(ctx context.Context, child *Child) error {
	if child.Verify == nil || child.found && child.Verify(child.Live) == nil {
		return nil
	}
	stored, doing, err := w.dryRun(ctx, child)
	switch {
	case apierrors.IsBadRequest(err):
		return nil // A webhook does not support dry runs. verifyLive verifies what is stored.
	case err != nil:
		return Refused(doing, child.Desired, err)
	}
	return Refused(doing, child.Desired, child.Verify(stored))
}

// dryRun returns the child as the API server would store it. For one that exists, it is that of
// a merge patch: an apply depends on managedFields, which the write may have to change first. No
// read of the cache waits for the version in a response: nothing is stored.
func (w Writer) dryRun(ctx context.Context, child *Child) (stored client.Object, doing string, err error) {
	if !child.found {
		stored = child.Desired.DeepCopyObject().(client.Object)
		return stored, "creating", w.Client.Create(ctx, stored, client.DryRunAll, client.FieldOwner(FieldManager), client.DisableReadYourWritesConsistency)
	}
	stored = child.Live.DeepCopyObject().(client.Object)
	patch, err := overlayPatch(child.Desired, stored)
	if err != nil || patch == nil {
		return stored, "applying", err
	}
	return stored, "applying", w.Client.Patch(ctx, stored, client.RawPatch(types.MergePatchType, patch),
		client.DryRunAll, client.FieldOwner(FieldManager), client.DisableReadYourWritesConsistency)
}

// verifyLive returns a *RefusedError if what is stored lacks what the child must not be without.
func (c *Child) verifyLive() error {
	if c.Verify == nil || c.Desired == nil || !c.found {
		return nil
	}
	return Refused("applying", c.Desired, c.Verify(c.Live))
}
