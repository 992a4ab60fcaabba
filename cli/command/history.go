// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/rollout"
)

type historyOptions struct {
	Env
	cluster clusterFlags
	output  string
}

func newHistory(env Env) *cobra.Command {
	o := &historyOptions{Env: env, cluster: newClusterFlags(env)}
	cmd := &cobra.Command{
		Use:     "history KIND/NAME",
		GroupID: online,
		Short:   "Show the revisions of a ModelBox or an App",
		Long: `Show the revisions of the Deployment of a ModelBox or an App, with the image of the main container and the time at
which each was first rolled out. Kubernetes keeps the last 10. A * marks the current one.`,
		Example:           example(`{} history modelbox/web`),
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: o.cluster.completeNames(hasHistory),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.cluster.bind(cmd)
	cmd.Flags().StringVarP(&o.output, "output", "o", "text", "output format: text or json")
	complete(cmd, "output", "text", "json")
	return cmd
}

func hasHistory(kind *kinds.Kind) bool { return kind.Workload() && kind.Singular() != "genericdaemon" }

func (o *historyOptions) run(ctx context.Context, args []string) error {
	if err := oneOf(o.output, "text", "json"); err != nil {
		return err
	}
	target, err := o.cluster.target(args)
	if err != nil {
		return err
	}
	h, err := target.history(ctx)
	if err != nil {
		return err
	}
	if o.output == "json" {
		encoder := json.NewEncoder(o.Out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(h.revisions)
	}
	table := tabwriter.NewWriter(o.Out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "REVISION\tCREATED\tREPLICAS\tIMAGE\tCHANGE-CAUSE")
	for _, r := range h.revisions {
		mark := ""
		if r.Current {
			mark = " *"
		}
		fmt.Fprintf(table, "%d%s\t%s\t%d\t%s\t%s\n", r.Number, mark, r.Created.UTC().Format(time.RFC3339), r.Replicas, r.Image, r.ChangeCause)
	}
	return table.Flush()
}

// history is the Deployment of an object, its revisions, and the name of the main container.
type history struct {
	deployment *appsv1.Deployment
	revisions  []rollout.Revision
	container  string
}

// history returns the history of the target.
func (t *target) history(ctx context.Context) (*history, error) {
	if !hasHistory(t.kind) {
		return nil, fmt.Errorf("only a ModelBox and an App have a Deployment of their own; for another workload use 'kubectl rollout history'")
	}
	obj := t.kind.New()
	if err := t.get(ctx, obj); err != nil {
		return nil, err
	}
	deployment := &appsv1.Deployment{}
	if err := t.get(ctx, deployment); err != nil {
		return nil, err
	}
	if !metav1.IsControlledBy(deployment, obj) {
		return nil, fmt.Errorf("deployment %q is not controlled by %s", deployment.Name, t)
	}
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return nil, err
	}
	sets := &appsv1.ReplicaSetList{}
	if err := t.client.List(ctx, sets, client.InNamespace(t.key.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing ReplicaSets: %w", err)
	}
	container := mainContainer(obj)
	return &history{deployment, rollout.Revisions(deployment, sets.Items, container), container}, nil
}

// mainContainer returns the name of the container that the operator generates.
func mainContainer(obj client.Object) string {
	switch obj := obj.(type) {
	case *modelv1.ModelBox:
		if obj.Spec.Name != "" {
			return obj.Spec.Name
		}
	case *appv1.App:
	}
	return obj.GetName()
}
