// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/modelbox-operator/modelbox-operator/cli/plan"
)

type planOptions struct {
	clusterFlags
	plan.Apply
	files  fileFlags
	output string
}

func newPlan(env Env) *cobra.Command {
	o := &planOptions{clusterFlags: newClusterFlags(env)}
	cmd := &cobra.Command{
		Use:     "plan -f FILE|FOLDER|-",
		GroupID: online,
		Short:   "Show what an apply would do: which pods restart, why, and what they need meanwhile",
		Long: `Show what "kubectl apply" of manifests would do to objects of the five kinds, and to their Deployments, DaemonSets
and Services: which pods restart, how many at a time and by which fields of the object; the spare pods and devices, such as
nvidia.com/gpu, that the rollout needs meanwhile; conflicts with autoscalers and other owners; and the differences.

Nothing is written. The API server is asked by dry runs of the request of kubectl, and of what the operator then writes to
the children, so the webhooks and policies of the cluster count. As of "kubectl diff", that needs the permissions of the
apply. A child that you may not read or write, or that is refused, is compared as the operator builds it, and a note says so.
What you may not list is named. Objects of other kinds have no plan, but autoscalers among them count for conflicts.

Exit codes, as of "kubectl diff": 0 without differences, 1 with differences, 3 if it cannot run, or if the API server
would refuse a manifest.`,
		Example: `  # What an apply of a folder would do
  {} plan -R -f deploy/

  # The same for a GitOps tool that uses server-side apply, for a machine
  kustomize build . | {} plan -f - --server-side --field-manager=argocd-controller -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			different, err := o.run(cmd.Context())
			switch {
			case err != nil:
				return exitError{Code: exitFailed, Err: err}
			case different:
				return exitError{Code: exitNo}
			}
			return nil
		},
	}
	o.files.bind(cmd)
	o.AddFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.ServerSide, "server-side", false, "plan a server-side apply")
	cmd.Flags().BoolVar(&o.Force, "force-conflicts", false, "plan a server-side apply that takes over the fields of other field managers")
	cmd.Flags().StringVar(&o.Manager, "field-manager", "", "field manager of the apply (default "+plan.ClientSideManager+", or "+plan.ServerSideManager+" with --server-side)")
	bindOutput(cmd, &o.output, "text", "json")
	for _, name := range []string{"sizes", "operator-namespace"} {
		cmd.Flags().String(name, "", "without effect")
		_ = cmd.Flags().MarkDeprecated(name, "the API server knows the sizes of the cluster") // The flag exists.
		cmd.Flags().Lookup(name).Hidden = false
	}
	o.WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		config.WarningHandler = rest.NewWarningWriter(env.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
		return config
	})
	return cmd
}

// run reports whether there is a difference.
func (o *planOptions) run(ctx context.Context) (different bool, err error) {
	docs, err := o.files.read(&o.Env, "plan")
	switch {
	case err != nil:
		return false, err
	case o.Force && !o.ServerSide:
		return false, errors.New("--force-conflicts needs --server-side")
	case o.ServerSide:
		o.Manager = cmp.Or(o.Manager, plan.ServerSideManager)
	}
	o.Manager = cmp.Or(o.Manager, plan.ClientSideManager)
	c, namespace, err := o.connect()
	if err != nil {
		return false, err
	}
	planner := plan.Planner{Client: c, Namespace: namespace, Apply: o.Apply, Now: o.Clock.Now()}
	found, err := planner.Plan(ctx, docs)
	if err != nil {
		return false, err
	}
	if len(found.Objects) == 0 {
		fmt.Fprintln(o.ErrOut, "No objects of the five kinds in the manifests.")
	}
	return slices.ContainsFunc(found.Objects, func(o *plan.Object) bool { return o.Change != plan.Unchanged }),
		o.print(o.output, found, func(w io.Writer) error { return writePlan(w, found) })
}

// writePlan writes a plan in sentences, and then the differences.
func writePlan(w io.Writer, p *plan.Plan) error {
	for _, o := range p.Objects {
		for _, sentence := range sentences(o) {
			fmt.Fprintf(w, "%s/%s: %s\n", strings.ToLower(o.Kind), o.Name, sentence)
		}
	}
	for _, what := range p.Hidden {
		fmt.Fprintf(w, "not considered: %s\n", what)
	}
	for _, o := range p.Objects {
		if o.Diff != "" {
			fmt.Fprintf(w, "\n%s", o.Diff)
		}
	}
	return nil
}

func sentences(o *plan.Object) (out []string) {
	switch {
	case o.Change == plan.Unchanged:
		out = append(out, "no difference")
	case o.Restart != nil:
		out = append(out, restarts(o.Restart))
	case o.Change == plan.Created:
		out = append(out, "is created")
	default:
		out = append(out, "restarts no pod")
	}
	if s := o.Scale; s != nil {
		out = append(out, fmt.Sprintf("scales from %d to %s%s", s.From, counted(int(s.To), "pod"), with("; the new pods request", s.NewDevices)))
	}
	for _, text := range o.Conflicts {
		out = append(out, "conflict: "+text)
	}
	for _, text := range o.Notes {
		out = append(out, "note: "+text)
	}
	return out
}

func restarts(r *plan.Restart) string {
	text := "restarts " + counted(int(r.Pods), "pod")
	if at := r.StartsAt; at != nil {
		text += " when the next window opens, at " + at.Format(time.RFC3339)
	}
	switch {
	case r.Pods < 2:
	case r.AtATime == r.Pods:
		text += ", all at the same time"
	case r.AtATime == 1:
		text += ", one after another"
	default:
		text += fmt.Sprintf(", at most %d at a time", r.AtATime)
	}
	if len(r.Fields) == 0 {
		text += ": they do not have the state of the stored object"
	} else {
		text += ": change of " + strings.Join(r.Fields, ", ")
	}
	if r.SparePods > 0 {
		text += "; needs " + counted(int(r.SparePods), "spare pod") + with(" with", r.SpareDevices) + " during the rollout"
	}
	return text
}

// with returns devices after a word, "" for none.
func with(word string, devices map[string]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(devices)) {
		parts = append(parts, fmt.Sprintf(" %d %s", devices[name], name))
	}
	if len(parts) == 0 {
		return ""
	}
	return word + strings.Join(parts, ",")
}
