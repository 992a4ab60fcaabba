// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
)

// Run makes the steps of the adoption that were not made yet, and reports each with say. Each of
// them is one request with a precondition: after an error, a new Adoption continues. Until the last
// one, the operator writes nothing. With dryRun, the requests are dry runs.
func (a *Adoption) Run(ctx context.Context, dryRun bool, say func(format string, args ...any)) error {
	c, name := a.Client, strings.ToLower(a.Object.GetKind())+"/"+a.Object.GetName()
	if dryRun {
		c = client.NewDryRunClient(c)
	}
	if err := a.begin(ctx, c, name, say); err != nil {
		return err
	}
	for _, child := range a.children {
		if metav1.IsControlledBy(child.live, a.Object) {
			continue
		}
		if err := a.take(ctx, c, child); err != nil {
			return fmt.Errorf("giving %s %q to %s: %w; run the command again to continue", render.KindOf(child.live), child.live.GetName(), name, err)
		}
		say("%s/%s is controlled by %s, and its fields belong to the operator", strings.ToLower(render.KindOf(child.live)), child.live.GetName(), name)
	}
	if !a.isToResume() {
		return nil
	}
	resume := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"paused":null}}`, a.Object.GetUID())
	if a.Exists || !dryRun { // What a dry run has created cannot be patched.
		if err := c.Patch(ctx, a.Object, client.RawPatch(types.MergePatchType, resume), client.FieldOwner(a.FieldManager)); err != nil {
			return fmt.Errorf("resuming %s: %w; run the command again to continue", name, err)
		}
	}
	say("%s resumed", name)
	return nil
}

// begin creates the object, unless it exists, or sets its replicas.
func (a *Adoption) begin(ctx context.Context, c client.Client, name string, say func(format string, args ...any)) error {
	if a.Exists {
		return a.setReplicas(ctx, c)
	}
	if err := unstructured.SetNestedField(a.Object.Object, true, "spec", "paused"); err != nil {
		return err
	}
	if err := c.Create(ctx, a.Object, client.FieldOwner(a.FieldManager)); err != nil {
		return fmt.Errorf("creating %s: %w", name, err)
	}
	say("%s created, with spec.paused", name)
	return nil
}

// isToResume reports whether the adoption has paused the object. Of one that was restored, users have.
func (a *Adoption) isToResume() bool { return !a.restored && kinds.IsPaused(a.Object) }

// take makes the object the controller of a child.
func (a *Adoption) take(ctx context.Context, c client.Client, child child) error {
	patch, err := child.taken(a.Object)
	if err != nil {
		return err
	}
	return c.Patch(ctx, child.live, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(a.FieldManager))
}
