// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	cmd := o.cluster.onTarget(&cobra.Command{
		Use:   "history KIND/NAME",
		Short: "Show the revisions of a ModelBox or an App",
		Long: `Show the revisions of the Deployment of a ModelBox or an App, with the image of the main container and the time at
which each was first rolled out. Kubernetes keeps the last 10. A * marks the current one.`,
		Example: example(`{} history modelbox/web`),
	}, hasHistory, o.run)
	bindOutput(cmd, &o.output, "text", "json", "yaml")
	return cmd
}

func hasHistory(kind *kinds.Kind) bool { return kind.Workload() && kind.Singular() != "genericdaemon" }

func (o *historyOptions) run(ctx context.Context, target *target) error {
	h, err := target.history(ctx)
	if err != nil {
		return err
	}
	return o.print(o.output, h.revisions, func(w io.Writer) error {
		table := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
		fmt.Fprintln(table, "REVISION\tCREATED\tREPLICAS\tIMAGE\tCHANGE-CAUSE")
		for _, r := range h.revisions {
			mark := ""
			if r.Current {
				mark = " *"
			}
			fmt.Fprintf(table, "%d%s\t%s\t%d\t%s\t%s\n", r.Number, mark, r.Created.UTC().Format(time.RFC3339), r.Replicas, r.Image, r.ChangeCause)
		}
		return table.Flush()
	})
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
	container := obj.GetName()
	if box, ok := obj.(*modelv1.ModelBox); ok {
		container = cmp.Or(box.Spec.Name, container)
	}
	return &history{deployment, rollout.Revisions(deployment, sets.Items, container), container}, nil
}
