// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
)

type pauseOptions struct {
	Env
	cluster clusterFlags
	paused  bool
}

func newPause(env Env) *cobra.Command {
	o := &pauseOptions{env, newClusterFlags(env), true}
	return o.cluster.onTarget(&cobra.Command{
		Use:   "pause KIND/NAME",
		Short: "Suspend the reconciliation of an object (spec.paused)",
		Long: `Suspend the reconciliation of a ModelBox, an App or a Genericdaemon: set spec.paused. Its pods continue to run, and
the operator does not write any of its children. A change of its spec, and scaling by "kubectl scale" or by a
HorizontalPodAutoscaler, take effect when the object is resumed. Drift of its children is not repaired.`,
		Example: example(`{} pause modelbox/web`),
	}, (*kinds.Kind).Workload, o.run)
}

func newResume(env Env) *cobra.Command {
	o := &pauseOptions{env, newClusterFlags(env), false}
	return o.cluster.onTarget(&cobra.Command{
		Use:   "resume KIND/NAME",
		Short: "End the suspension of an object (spec.paused)",
		Long: `End the suspension of a ModelBox, an App or a Genericdaemon: set spec.paused to false. The operator applies
the changes of its spec, replicas included, and repairs the drift of its children.`,
		Example: example(`{} resume modelbox/web`),
	}, (*kinds.Kind).Workload, o.run)
}

func (o *pauseOptions) run(ctx context.Context, target *target) error {
	switch {
	case target.kind.Singular() == "eru":
		return errors.New("an Eru cannot be paused: set spec.enabled to false")
	case !target.kind.Workload():
		return errors.New("a UnitedDeployment cannot be paused: delete it, which leaves the replicas of the Deployment as they are")
	}
	obj := target.kind.Unstructured()
	if err := target.get(ctx, obj); err != nil {
		return err
	}
	done := map[bool]string{true: "paused", false: "resumed"}[o.paused]
	if kinds.IsPaused(obj) == o.paused {
		fmt.Fprintf(o.Out, "%s %s (unchanged)\n", target, done)
		return nil
	}
	body := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"paused":%t}}`, obj.GetUID(), o.paused)
	if err := target.client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, body), client.FieldOwner(fieldManager)); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%s %s\n", target, done)
	return nil
}
