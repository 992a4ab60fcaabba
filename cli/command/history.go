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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/rollout"
)

func newHistory(env Env) *cobra.Command {
	var output string
	cmd := onTarget(env, &cobra.Command{
		Use:   "history KIND/NAME",
		Short: "Show the revisions of a ModelBox or an App",
		Long: `Show the revisions of the Deployment of a ModelBox or an App, with the image of the main container, the model and the
time at which each was first rolled out. Kubernetes keeps the last 10. A * marks the current one. With onFailedRollout:
Return, a line below says if it serves because the rollout of the spec has failed.

MODEL is what spec.model was verified by: its sha256, or the digest of an image. Without one, it is the digest of
status.model for the current revision, and the URI for others.`,
		Example: `  {} history modelbox/web`,
	}, hasHistory, func(ctx context.Context, t *target) error { return showHistory(ctx, t, output) })
	bindOutput(cmd, &output, "text", "json", "yaml")
	return cmd
}

func hasHistory(kind *kinds.Kind) bool { return kind.HasPods() && !kind.OnNodes() }

func showHistory(ctx context.Context, t *target, output string) error {
	_, h, err := t.history(ctx)
	if err != nil {
		return err
	}
	return t.print(output, h.revisions, func(w io.Writer) error {
		table := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
		fmt.Fprintln(table, "REVISION\tCREATED\tREPLICAS\tIMAGE\tMODEL\tCHANGE-CAUSE")
		for _, r := range h.revisions {
			mark := ""
			if r.Current {
				mark = " *"
			}
			model := cmp.Or(r.Digest[:min(len(r.Digest), len("sha256:")+12)], r.Model, "-")
			fmt.Fprintf(table, "%d%s\t%s\t%d\t%s\t%s\t%s\n", r.Number, mark, r.Created.UTC().Format(time.RFC3339), r.Replicas, r.Image, model, r.ChangeCause)
		}
		if n := len(h.revisions); n > 0 && h.revisions[n-1].RolledBack != "" {
			fmt.Fprintf(table, "\nThe rollout of the spec has failed (%s), so revision %d serves until spec is changed.\n", h.revisions[n-1].RolledBack, h.revisions[n-1].Number)
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

// history returns the target, and its history.
func (t *target) history(ctx context.Context) (*unstructured.Unstructured, *history, error) {
	if !hasHistory(t.kind) {
		return nil, nil, usage("only a ModelBox and an App have a Deployment of their own; for another workload use 'kubectl rollout history'")
	}
	obj, deployment := t.kind.Unstructured(), &appsv1.Deployment{}
	if err := t.client.Get(ctx, t.key, obj); err != nil {
		return nil, nil, err
	}
	if err := t.client.Get(ctx, t.key, deployment); err != nil {
		return nil, nil, err
	}
	if !metav1.IsControlledBy(deployment, obj) {
		return nil, nil, fmt.Errorf("deployment %q is not controlled by %s", deployment.Name, t)
	}
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return nil, nil, err
	}
	sets := &appsv1.ReplicaSetList{}
	if err := t.client.List(ctx, sets, client.InNamespace(t.key.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, nil, fmt.Errorf("listing ReplicaSets: %w", err)
	}
	name, _, _ := unstructured.NestedString(obj.Object, "spec", "name") // The schema knows its type.
	container := cmp.Or(name, obj.GetName())
	revisions := rollout.Revisions(deployment, sets.Items, container)
	uri, _, _ := unstructured.NestedString(obj.Object, "status", "model", "uri") // The schema knows its type.
	if n := len(revisions); n > 0 && revisions[n-1].Digest == "" && revisions[n-1].Model == uri {
		// What status says of the model, which only the operator writes, is about the current
		// revision.
		revisions[n-1].Digest, _, _ = unstructured.NestedString(obj.Object, "status", "model", "digest")
	}
	if n := len(revisions); n > 0 {
		if revisions[n-1].RolledBack, err = rollout.Failed(t.kind, obj); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", t, err)
		}
	}
	return obj, &history{deployment, revisions, container}, nil
}
