// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// compare finds out why a child does not look as it was written: another field manager
// changed it, which is repaired, or admission did, which is reported. What is known from an
// earlier write or reconcile is not read again.
func (w Writer) compare(ctx context.Context, owner client.Object, child *Child, report *report) error {
	cached := rewritesIn(child.Desired, child.Live)
	if !child.falseGeneration && w.Memory.areKnownRewrites(child.Live.GetUID(), cached) {
		report.rewrites = append(report.rewrites, cached...)
		return w.Memory.stillContested(child.Live.GetUID())
	}
	live, err := w.readLive(ctx, owner, child)
	if err != nil {
		return err
	}
	drifts, rewrites := classify(child.Desired, live)
	if child.falseGeneration {
		drifts = append(drifts, drift{field: path{{name: "metadata"}, {name: "annotations"}, {name: AnnotationGeneration}}.String()})
	}
	if len(drifts) == 0 {
		w.Memory.setRewrites(live.GetUID(), rewrites)
		report.rewrites = append(report.rewrites, rewrites...)
		return w.Memory.stillContested(live.GetUID())
	}
	return w.repair(ctx, owner, child, live, drifts, report)
}

// readLive reads a child from the API server, with its managedFields. That it changed
// hands, or was written by another process meanwhile, is an error that is retried.
func (w Writer) readLive(ctx context.Context, owner client.Object, child *Child) (client.Object, error) {
	live, err := w.readAgain(ctx, child.Live)
	if err != nil {
		return nil, err
	}
	if err := checkOwner(live, child.Desired); err != nil {
		return nil, err
	}
	if generation, newer := newerThan(owner, live); newer && !child.falseGeneration {
		return nil, &StaleError{Kind: kindOf(live), Name: owner.GetName(), Written: generation, Seen: owner.GetGeneration()}
	}
	if !child.falseHash && !hashMatches(child.Desired, live) {
		return nil, apierrors.NewConflict(resourceOf(live), owner.GetName(), errors.New("the cache does not show its last change yet"))
	}
	return live, nil
}

// repair applies a child that another field manager changed, as often as the limits
// allow.
func (w Writer) repair(ctx context.Context, owner client.Object, child *Child, live client.Object, drifts []drift, report *report) error {
	if w.readOnly {
		return ErrPaused
	}
	kind := kindOf(live)
	if limited, due := w.Memory.allowRepair(live.GetUID(), drifts); limited != nil {
		contested := &ContestedError{Kind: kind, Name: owner.GetName(), Field: limited.field, Manager: limited.manager, Due: due}
		contested.RetryAfter = due.Sub(w.Memory.now())
		w.Memory.setContested(live.GetUID(), contested)
		return contested
	}
	setGeneration(child.Desired, owner)
	if err := w.update(ctx, child, live, report); err != nil {
		return Refused("applying", child.Desired, err)
	}
	report.repairs = append(report.repairs, repair{kind: kind, name: owner.GetName(), field: drifts[0].field, manager: drifts[0].manager})
	return w.Memory.stillContested(child.Live.GetUID())
}
