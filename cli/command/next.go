// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/runs"
	"github.com/modelbox-operator/modelbox-operator/cron"
)

type nextOptions struct {
	Env
	cluster                 clusterFlags
	files                   fileFlags
	reader                  client.Reader // Of the cluster, nil for files.
	number                  int
	all                     bool
	timeZone, after, output string
}

func newNext(env Env) *cobra.Command {
	o := &nextOptions{Env: env, cluster: newClusterFlags(env)}
	cmd := &cobra.Command{
		Use:     "next [KIND/NAME | SCHEDULE | -f FILE | -A] [--time-zone ZONE]",
		GroupID: offline,
		Short:   "List upcoming scheduled times: of a schedule, of an object, or of everything",
		Long: `List the next scheduled times of a cron schedule, of an object, of the objects in files, of those of the namespace, or
with -A of those of all namespaces, in one table and in one time zone: restarts of Erus, replicas, and windows that open.

A note marks the times that a change of the clocks concerns: those whose local time does not exist or comes twice, and
the first one after a change. It marks, too, the times at which several objects of a namespace change in one minute.
Erus that are not enabled are left out. Paused objects and frozen namespaces are not. A schedule and files need no cluster.`,
		Example: `  # When will an Eru restart its Deployment?
  {} next eru/nightly --namespace serving

  # Try a schedule before it is used
  {} next "30 2 * * *" --time-zone Europe/Berlin -n 5
  {} next -f eru.yaml

  # All that is scheduled in the cluster, and in manifests
  {} next -A --time-zone Europe/Berlin
  {} next -f deploy/ -R -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeKinds(func(*kinds.Kind) bool { return true }),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.files.bind(cmd)
	cluster := (&cobra.Command{}).Flags()
	o.cluster.AddFlags(cluster)
	cluster.Lookup("namespace").Shorthand = "" // Here, -n is the number.
	cmd.Flags().AddFlagSet(cluster)
	cmd.Flags().IntVarP(&o.number, "number", "n", 10, "number of times, 1 to 1000")
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "list the scheduled times of all objects in all namespaces")
	cmd.Flags().StringVar(&o.timeZone, "time-zone", cron.DefaultZone, "IANA name of the time zone of SCHEDULE, and of the list, such as Europe/Berlin")
	cmd.Flags().StringVar(&o.after, "after", "", "instant after which the times are, such as 2026-10-25T00:00:00Z; the current time by default")
	bindOutput(cmd, &o.output, "table", "json", "yaml")
	return cmd
}

func (o *nextOptions) run(ctx context.Context, args []string) error {
	now := o.Clock.Now()
	if o.after != "" {
		var err error
		if now, err = time.Parse(time.RFC3339, o.after); err != nil {
			return usage("--after: %w; write it as 2026-10-25T00:00:00Z", err)
		}
	}
	if o.number < 1 || o.number > 1000 {
		return usage("--number: must be from 1 to 1000; the namespace is --namespace, without a short form")
	}
	zone, err := cron.LoadLocation(o.timeZone)
	if err != nil {
		return usage("time zone %q: %w", o.timeZone, err)
	}
	schedules, err := o.schedules(ctx, args)
	if err != nil {
		return err
	}
	times := runs.First(schedules, now, o.number)
	for i := range times {
		times[i].Time = times[i].Time.In(zone)
	}
	return o.print(o.output, times, func(w io.Writer) error { return writeTimes(w, times, now) })
}

// schedules returns the schedule of the argument, or those of objects. What is invalid of several
// objects is left out.
func (o *nextOptions) schedules(ctx context.Context, args []string) ([]*runs.Time, error) {
	named := len(args) > 0
	if named && (o.all || len(o.files.names) > 0) {
		return nil, usage("name files, all namespaces, an object or a schedule, not several of them")
	}
	if named && !isReference(args[0]) {
		schedule, err := runs.New(args[0], o.timeZone)
		if err != nil {
			return nil, usage("schedule %q: %w", args[0], err)
		}
		return []*runs.Time{schedule}, nil
	}
	objects, err := o.objects(ctx, args)
	if err != nil {
		return nil, err
	}
	var out []*runs.Time
	for i := range objects {
		found, err := runs.Of(&objects[i], o.restarted(ctx, &objects[i]))
		if err != nil {
			fmt.Fprintf(o.ErrOut, "warning: %s %s/%s is left out: %v\n", objects[i].GetKind(), objects[i].GetNamespace(), objects[i].GetName(), err)
			continue
		}
		out = append(out, found)
	}
	return out, nil
}

// restarted returns the restartedAt of the Deployment of an Eru in the cluster, the zero time if it
// is not known.
func (o *nextOptions) restarted(ctx context.Context, of *unstructured.Unstructured) (at time.Time) {
	obj, deployment := &mtsrev1.Eru{}, &appsv1.Deployment{}
	if o.reader == nil || of.GetKind() != "Eru" || create.Into(of, obj) != nil {
		return at
	}
	if o.reader.Get(ctx, client.ObjectKey{Namespace: of.GetNamespace(), Name: obj.DeploymentNameOrDefault()}, deployment) == nil {
		at, _ = time.Parse(time.RFC3339, deployment.Spec.Template.Annotations[api.AnnotationRestartedAt])
	}
	return at
}

// isReference reports whether an argument is KIND/NAME. A schedule has spaces or begins with @.
func isReference(arg string) bool {
	return !strings.HasPrefix(arg, "@") && !strings.Contains(arg, " ") && strings.Contains(arg, "/")
}

// objects returns the object of the argument; those of the files; or those of the namespace, or of
// all.
func (o *nextOptions) objects(ctx context.Context, args []string) ([]unstructured.Unstructured, error) {
	switch {
	case len(o.files.names) > 0:
		return o.documents()
	case len(args) > 0:
		target, err := o.cluster.target(args)
		if err != nil {
			return nil, err
		}
		o.reader = target.client
		obj := target.kind.Unstructured()
		err = target.client.Get(ctx, target.key, obj)
		return []unstructured.Unstructured{*obj}, err
	}
	c, namespace, err := o.cluster.connect()
	if err != nil {
		return nil, err
	}
	o.reader = c
	if o.all {
		namespace = metav1.NamespaceAll
	}
	return o.objectsIn(ctx, c, namespace)
}

func (o *nextOptions) documents() (out []unstructured.Unstructured, err error) {
	docs, err := o.files.read(&o.Env, "list")
	if err != nil {
		return nil, err
	}
	for _, doc := range docs {
		kind, unknown := kinds.Match(doc.Object.GroupVersionKind())
		if err := cmp.Or(doc.Err, unknown); err != nil {
			return nil, usage("%s:%d: %w", doc.File, doc.Line, err)
		}
		if kind != nil {
			doc.Object.SetNamespace(cmp.Or(doc.Object.GetNamespace(), *o.cluster.Namespace, metav1.NamespaceDefault))
			out = append(out, *doc.Object)
		}
	}
	return out, nil
}

func writeTimes(w io.Writer, times []runs.Time, now time.Time) error {
	table := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "TIME\tIN\tNAMESPACE\tOBJECT\tACTION\tNOTE")
	for _, t := range times {
		if t.Collisions > 0 {
			t.Note = strings.TrimSuffix(fmt.Sprintf("%d more in this minute; %s", t.Collisions, t.Note), "; ")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n",
			t.Time.Format("Mon "+time.RFC3339), duration.HumanDuration(t.Time.Sub(now)), cmp.Or(t.Namespace, "-"), cmp.Or(t.Object, "-"), cmp.Or(t.Action, "-"), t.Note)
	}
	return table.Flush()
}
