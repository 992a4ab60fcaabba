// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/cli/adopt"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
)

type adoptOptions struct {
	clusterFlags
	kind                 string
	apply, dryRun, force bool
	explained            string

	report, all, restored bool
	files                 fileFlags
	output                string
}

func newAdopt(env Env) *cobra.Command {
	o := &adoptOptions{clusterFlags: newClusterFlags(env)}
	cmd := &cobra.Command{
		Use:     "adopt deployment/NAME [service/NAME] | --report [-A | -f FILE|FOLDER|-] | --restored KIND/NAME",
		GroupID: online,
		Short:   "Adopt a running Deployment and its Service without a restart",
		Long: `Print the App, or the ModelBox, whose Deployment and Service are those that run, with an autoscaler and a
budget of its name. What has no field of its own is in spec.podTemplate, and spec.selector keeps the selector. With
--apply, the operator takes them over: no pod restarts, and the Service keeps its address.

Without --apply nothing is written. It refuses what it cannot take over without a change of the pods, and says what to
do instead. What else manages them, what the operator will change of them, and what the object does not have is printed
on the standard error first; with --apply, another manager is an error, unless --force is set. --dry-run prints the steps of
--apply, which the API server checks (docs/adopt.md).

With --report, it prints instead what each Deployment of the namespace, of all with -A, or of manifests with -f would
become, or why it cannot be adopted, and what is risky about it. It reads only, and sends no dry runs.

With --restored, it gives to a ModelBox, an App or a Genericdaemon the children that were restored without owner
references, so that no pod is replaced. Without --apply, it prints the steps.

It needs the permissions of the role edit in the namespace, and --report those of view. To leave again, delete the
object, and not what it owns:
kubectl delete app.app.huolala.cn/NAME --cascade=orphan`,
		Example: `  # The App that a Deployment and its Service become
  {} adopt deployment/web service/web > web.yaml

  # Hand them over
  {} adopt deployment/web service/web --apply

  # What all Deployments of the cluster, or of manifests, would become
  {} adopt --report -A
  {} adopt --report -R -f deploy/ -o json

  # After a restore, the children of a ModelBox belong to it again
  {} adopt --restored modelbox/web --apply`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&o.kind, "kind", "App", "kind of the object: App, which adds nothing, or ModelBox")
	cmd.Flags().BoolVar(&o.apply, "apply", false, "create the object, and give the Deployment and the Service to it")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "print the steps of --apply, and send them as dry runs")
	cmd.Flags().BoolVar(&o.force, "force", false, "with --apply, also if something else manages the Deployment or the Service")
	complete(cmd, "kind", "App", "ModelBox")
	cmd.Flags().BoolVar(&o.report, "report", false, "print what each Deployment would become, or why it cannot, and what is risky")
	cmd.Flags().BoolVar(&o.restored, "restored", false, "give to an object of a backup its children, which were restored without their owner")
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "with --report, the Deployments of all namespaces")
	o.files.bind(cmd)
	bindOutput(cmd, &o.output, "table", "json", "yaml")
	return cmd
}

func (o *adoptOptions) run(ctx context.Context, args []string) error {
	kind, err := kinds.Find(o.kind)
	if err != nil || !hasHistory(kind) {
		return usage("--kind is the kind of the object, App or ModelBox, and not %q", o.kind)
	}
	if o.report {
		return o.printReport(ctx, kind, args)
	}
	if o.all || len(o.files.names) > 0 || o.output != "table" {
		return usage("-A, -f and -o belong to --report")
	}
	if o.restored {
		return o.giveRestored(ctx, args)
	}
	key, service, err := named(args)
	if err != nil {
		return err
	}
	c, namespace, err := o.connect()
	if err != nil {
		return err
	}
	key.Namespace = namespace
	return again(func() error {
		adoption := &adopt.Adoption{Client: c, FieldManager: fieldManager}
		if err := adoption.Prepare(ctx, kind, key, service); err != nil {
			return err
		}
		return o.proceed(ctx, adoption, kind.Singular()+"/"+key.Name, args)
	})
}

// proceed prints what was prepared for an object, or makes its steps.
func (o *adoptOptions) proceed(ctx context.Context, adoption *adopt.Adoption, name string, args []string) error {
	o.explain(adoption)
	switch {
	case adoption.Done:
		fmt.Fprintf(o.Out, "%s has adopted %s already (unchanged)\n", name, strings.Join(args, " and "))
		return nil
	case !o.apply && !o.dryRun && adoption.Exists:
		fmt.Fprintf(o.Out, "%s exists, and has not adopted everything yet: --apply continues\n", name)
		return nil
	case !o.apply && !o.dryRun:
		return o.print("yaml", adoption.Object.Object, nil)
	case len(adoption.Conflicts) > 0 && !o.force && !o.dryRun:
		return errors.New("nothing was written: resolve the conflicts, or use --force")
	}
	suffix := "\n"
	if o.dryRun {
		suffix = " (dry run)\n"
	}
	return adoption.Run(ctx, o.dryRun, func(format string, args ...any) { fmt.Fprintf(o.Out, format+suffix, args...) })
}

// giveRestored gives the restored object that the arguments name its children, or prints the steps.
func (o *adoptOptions) giveRestored(ctx context.Context, args []string) error {
	t, err := o.target(args)
	if err != nil {
		return err
	}
	if !t.kind.HasPods() {
		return usage("--restored is for a ModelBox, an App or a Genericdaemon: %s has no children", t)
	}
	o.dryRun = o.dryRun || !o.apply
	return again(func() error {
		adoption := &adopt.Adoption{Client: t.client, FieldManager: fieldManager}
		if err := adoption.PrepareRestored(ctx, t.kind, t.key); err != nil {
			return err
		}
		return o.proceed(ctx, adoption, t.String(), []string{"each of its children"})
	})
}

// explain prints what the user has to know before anything is written, once.
func (o *adoptOptions) explain(adoption *adopt.Adoption) {
	var text strings.Builder
	for _, conflict := range adoption.Conflicts {
		fmt.Fprintln(&text, "conflict:", conflict)
	}
	for _, warning := range adoption.Warnings {
		fmt.Fprintln(&text, "warning:", strings.ReplaceAll(warning, "\n", "\n    "))
	}
	for _, note := range adoption.Notes {
		fmt.Fprintln(&text, "note:", note)
	}
	if adoption.Diff != "" {
		fmt.Fprintf(&text, "note: the operator will change:\n%s", adoption.Diff)
	}
	if o.explained != text.String() {
		o.explained = text.String()
		fmt.Fprint(o.ErrOut, o.explained)
	}
}

// named returns the name in deployment/NAME, and that in service/NAME, "" if there is none.
func named(args []string) (key client.ObjectKey, service string, err error) {
	const wayOut = "name deployment/NAME, and service/NAME if its Service is adopted as well"
	if len(args) == 0 {
		return key, "", usage("%s; or use --report", wayOut)
	}
	for i, arg := range args {
		resource, name, ok := strings.Cut(arg, "/")
		resource, _, _ = strings.Cut(strings.ToLower(resource), ".")
		isService := slices.Contains([]string{"service", "services", "svc"}, resource)
		if !ok || name == "" || isService != (i == 1) || !isService && !slices.Contains([]string{"deployment", "deployments", "deploy"}, resource) {
			return key, "", usage("%q: %s", arg, wayOut)
		}
		if isService {
			service = name
		} else {
			key.Name = name
		}
	}
	return key, service, nil
}
