// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// compare finds out why a child differs from the desired state that was written: another
// field manager modified it, which is reverted, or admission did, which is reported. Rewrites
// that are stored from an earlier write or reconcile need no read.
func (w Writer) compare(ctx context.Context, owner client.Object, child *Child, report *report) error {
	cached := rewritesIn(child.Desired, child.Live)
	if !child.wrongGeneration && w.Memory.areKnownRewrites(child.Live.GetUID(), cached) {
		report.rewrites = append(report.rewrites, cached...)
		return w.Memory.stillContested(child.Live.GetUID())
	}
	live, err := w.readForRepair(ctx, owner, child)
	if err != nil {
		return err
	}
	drifts, rewrites := classify(child.Desired, live)
	if child.wrongGeneration {
		drifts = append(drifts, drift{field: path{{name: "metadata"}, {name: "annotations"}, {name: AnnotationGeneration}}.String()})
	}
	if len(drifts) == 0 {
		w.Memory.setRewrites(live.GetUID(), rewrites)
		report.rewrites = append(report.rewrites, rewrites...)
		return w.Memory.stillContested(live.GetUID())
	}
	return w.repair(ctx, owner, child, live, drifts, report)
}

// readForRepair reads a child from the API server, with its managedFields. It returns an error,
// which is retried, if the child has another controller, or if another process wrote it
// meanwhile.
func (w Writer) readForRepair(ctx context.Context, owner client.Object, child *Child) (client.Object, error) {
	live, err := w.readLive(ctx, child.Live)
	if err != nil {
		return nil, err
	}
	if err := checkOwner(live, child.Desired); err != nil {
		return nil, err
	}
	if generation, newer := newerThan(owner, live); newer && !child.wrongGeneration {
		return nil, &StaleError{Kind: kindOf(live), Name: owner.GetName(), Newer: generation, Cached: owner.GetGeneration()}
	}
	if !child.wrongHash && !hashMatches(child.Desired, live) {
		return nil, apierrors.NewConflict(resourceOf(live), owner.GetName(), errBehind)
	}
	return live, nil
}

// repair applies a child that another field manager modified, as often as the limits allow.
func (w Writer) repair(ctx context.Context, owner client.Object, child *Child, live client.Object, drifts []drift, report *report) error {
	if w.readOnly {
		return ErrPaused
	}
	kind := kindOf(live)
	if limited, next := w.Memory.allowRepair(live.GetUID(), drifts); limited != nil {
		contested := &ContestedError{Kind: kind, Name: owner.GetName(), Field: limited.field, Manager: limited.manager, NextRepair: next}
		contested.RetryAfter = next.Sub(w.Memory.now())
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
