// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/manifest"
	"github.com/modelbox-operator/modelbox-operator/cli/runs"
	"github.com/modelbox-operator/modelbox-operator/cron"
	"github.com/modelbox-operator/modelbox-operator/kinds/eru"
)

type nextOptions struct {
	Env
	cluster                 clusterFlags
	files                   fileFlags
	number                  int
	timeZone, after, output string
}

func newNext(env Env) *cobra.Command {
	o := &nextOptions{Env: env, cluster: newClusterFlags(env)}
	cmd := &cobra.Command{
		Use:     "next {eru/NAME | -f FILE | SCHEDULE [--time-zone ZONE]}",
		GroupID: offline,
		Short:   "Show the next runs of an Eru or of a schedule",
		Long: `Show the next runs of an Eru in the cluster, of the Erus in a file, or of a cron schedule. A note marks the runs
that a change of the clocks concerns: those whose local time does not exist or comes twice, and the first run
after a change. Only eru/NAME needs a cluster.`,
		Example: example(`
			# When will an Eru restart its Deployment?
			{} next eru/nightly --namespace serving

			# Try a schedule before it is used
			{} next "30 2 * * *" --time-zone Europe/Berlin -n 5
			{} next -f eru.yaml`),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.cluster.completeNames(func(k *kinds.Kind) bool { return k.Singular() == "eru" }),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args, cmd.Flags().Changed("time-zone"))
		},
	}
	o.files.bind(cmd)
	o.cluster.bindWithoutShorthand(cmd)
	cmd.Flags().IntVarP(&o.number, "number", "n", 10, "number of runs, 1 to 1000")
	cmd.Flags().StringVar(&o.timeZone, "time-zone", "Etc/UTC", "IANA name of the time zone of SCHEDULE, such as Europe/Berlin")
	cmd.Flags().StringVar(&o.after, "after", "", "instant after which the runs are, such as 2026-10-25T00:00:00Z; the current time by default")
	bindOutput(cmd, &o.output, "text", "json", "yaml")
	return cmd
}

// scheduled is a schedule and its next runs.
type scheduled struct {
	Name     string     `json:"name,omitempty"`
	Schedule string     `json:"schedule"`
	TimeZone string     `json:"timeZone"`
	Remark   string     `json:"remark,omitempty"`
	Runs     []runs.Run `json:"runs"`
}

func (o *nextOptions) run(ctx context.Context, args []string, zoneGiven bool) error {
	now := o.Clock.Now()
	if o.after != "" {
		var err error
		if now, err = time.Parse(time.RFC3339, o.after); err != nil {
			return fmt.Errorf("--after: %w; write it as 2026-10-25T00:00:00Z", err)
		}
	}
	if o.number < 1 || o.number > 1000 {
		return errors.New("--number: must be from 1 to 1000; the namespace is --namespace, without a short form")
	}
	specs, err := o.schedules(ctx, args, zoneGiven)
	if err != nil {
		return err
	}
	for i := range specs {
		if err := specs[i].setRuns(now, o.number); err != nil {
			return err
		}
	}
	return o.print(o.output, specs, func(w io.Writer) error { return writeRuns(w, specs, now) })
}

// schedules returns the schedules that the arguments name, without their runs.
func (o *nextOptions) schedules(ctx context.Context, args []string, zoneGiven bool) ([]scheduled, error) {
	switch {
	case len(o.files.names) > 0 && len(args) > 0:
		return nil, errors.New("name a file or an Eru or a schedule, not several of them")
	case len(o.files.names) > 0:
		return o.inFiles()
	case len(args) == 0:
		return nil, errors.New(`name an Eru (eru/NAME), a file (-f FILE) or a schedule ("30 2 * * *")`)
	case isReference(args[0]):
		if zoneGiven {
			return nil, errors.New("--time-zone is for a schedule: an Eru has spec.timeZone")
		}
		return o.inCluster(ctx, args[0])
	}
	return []scheduled{{Schedule: args[0], TimeZone: o.timeZone}}, nil
}

// isReference reports whether an argument is eru/NAME. A schedule has spaces or begins with @.
func isReference(arg string) bool {
	return !strings.HasPrefix(arg, "@") && !strings.Contains(arg, " ") && strings.Contains(arg, "/")
}

func (o *nextOptions) inFiles() ([]scheduled, error) {
	docs, err := manifest.Read(o.files.names, o.files.recursive, o.In)
	if err != nil {
		return nil, err
	}
	var out []scheduled
	for i := range docs {
		doc := &docs[i]
		kind := kinds.Of(doc.GVK.GroupKind())
		if doc.Err != nil {
			return nil, fmt.Errorf("%s:%d: %w", doc.File, doc.Line, doc.Err)
		}
		if kind == nil || kind.Singular() != "eru" {
			continue
		}
		resp := create.Dry(kind, create.Request{
			Body: doc.Data, YAML: doc.YAML, Namespace: cmp.Or(doc.Namespace, metav1.NamespaceDefault), Validation: metav1.FieldValidationStrict,
		})
		if err := resp.Err(); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", doc.File, doc.Line, err)
		}
		obj := &mtsrev1.Eru{}
		if err := create.Into(resp.Object, obj); err != nil {
			return nil, err
		}
		out = append(out, scheduleOf(obj))
	}
	if len(out) == 0 {
		return nil, errors.New("the files have no Eru")
	}
	return out, nil
}

func (o *nextOptions) inCluster(ctx context.Context, arg string) ([]scheduled, error) {
	target, err := o.cluster.target([]string{arg})
	if err != nil {
		return nil, err
	}
	obj := &mtsrev1.Eru{}
	if target.kind.Singular() != "eru" {
		return nil, fmt.Errorf("%s has no schedule: name an Eru", arg)
	}
	if err := target.get(ctx, obj); err != nil {
		return nil, err
	}
	eru.Default(obj, nil, nil)
	return []scheduled{scheduleOf(obj)}, nil
}

// scheduleOf returns the schedule of an Eru that has its defaults.
func scheduleOf(obj *mtsrev1.Eru) scheduled {
	out := scheduled{Name: obj.Name, Schedule: obj.Spec.Schedule, TimeZone: obj.Spec.TimeZone}
	var remarks []string
	if !obj.Spec.Enabled {
		remarks = append(remarks, "spec.enabled is false, so it does not run")
	}
	if jitter := obj.Spec.JitterSeconds; jitter > 0 {
		remarks = append(remarks, fmt.Sprintf("each run starts up to %d s later (spec.jitterSeconds)", jitter))
	}
	out.Remark = strings.Join(remarks, "; ")
	return out
}

func (s *scheduled) setRuns(after time.Time, n int) error {
	schedule, err := cron.Parse(s.Schedule)
	if err != nil {
		return fmt.Errorf("schedule %q: %w", s.Schedule, err)
	}
	zone, err := cron.LoadLocation(s.TimeZone)
	if err != nil {
		return fmt.Errorf("time zone %q: %w", s.TimeZone, err)
	}
	s.Runs = runs.Next(schedule, zone, after, n)
	return nil
}

func writeRuns(w io.Writer, specs []scheduled, now time.Time) error {
	for i, spec := range specs {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if spec.Name != "" {
			fmt.Fprintf(w, "eru/%s: %s (%s)\n", spec.Name, spec.Schedule, spec.TimeZone)
		}
		if spec.Remark != "" {
			fmt.Fprintln(w, "note:", spec.Remark)
		}
		table := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
		fmt.Fprintln(table, "RUN\tIN\tNOTE")
		for _, run := range spec.Runs {
			fmt.Fprintf(table, "%s\t%s\t%s\n", run.Time.Format("Mon "+time.RFC3339), duration.HumanDuration(run.Time.Sub(now)), run.Note)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
}
