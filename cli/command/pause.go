// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
)

func newPause(env Env) *cobra.Command {
	return onTarget(env, &cobra.Command{
		Use:   "pause KIND/NAME",
		Short: "Suspend the reconciliation of an object (spec.paused)",
		Long: `Suspend the reconciliation of a ModelBox, an App or a Genericdaemon: set spec.paused. Its pods continue to run, and
the operator does not write any of its children. A change of its spec, and scaling by "kubectl scale" or by a
HorizontalPodAutoscaler, take effect when the object is resumed. Drift of its children is not repaired.`,
		Example: `  {} pause modelbox/web`,
	}, (*kinds.Kind).HasPods, func(ctx context.Context, t *target) error { return setPaused(ctx, t, true) })
}

func newResume(env Env) *cobra.Command {
	return onTarget(env, &cobra.Command{
		Use:   "resume KIND/NAME",
		Short: "End the suspension of an object (spec.paused)",
		Long: `End the suspension of a ModelBox, an App or a Genericdaemon: set spec.paused to false. The operator applies
the changes of its spec, replicas included, and repairs the drift of its children.`,
		Example: `  {} resume modelbox/web`,
	}, (*kinds.Kind).HasPods, func(ctx context.Context, t *target) error { return setPaused(ctx, t, false) })
}

func setPaused(ctx context.Context, t *target, paused bool) error {
	switch {
	case t.kind.Singular() == "eru":
		return usage("an Eru cannot be paused: set spec.enabled to false")
	case !t.kind.HasPods():
		return usage("a UnitedDeployment cannot be paused: delete it, which leaves the replicas of the Deployment as they are")
	}
	obj := t.kind.Unstructured()
	if err := t.client.Get(ctx, t.key, obj); err != nil {
		return err
	}
	done := map[bool]string{true: "paused", false: "resumed"}[paused]
	if kinds.IsPaused(obj) == paused {
		fmt.Fprintf(t.Out, "%s %s (unchanged)\n", t, done)
		return nil
	}
	body := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"paused":%t}}`, obj.GetUID(), paused)
	if err := t.client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, body), client.FieldOwner(fieldManager)); err != nil {
		return err
	}
	fmt.Fprintf(t.Out, "%s %s\n", t, done)
	return nil
}
