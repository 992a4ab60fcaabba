// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench compares the operator with other implementations of the same job, and
// its cost with the budgets. See docs/performance.md.
//
//	make bench
//	make bench ROUNDS=1 OBJECTS=100
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/go-logr/logr"

	"github.com/modelbox-operator/modelbox-operator/bench/admission"
	"github.com/modelbox-operator/modelbox-operator/bench/implementation"
	"github.com/modelbox-operator/modelbox-operator/bench/plot"
	"github.com/modelbox-operator/modelbox-operator/bench/report"
	"github.com/modelbox-operator/modelbox-operator/bench/rows"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	bench                 rows.Bench
	implementations, only string
	json                  string
	// plots is a directory, and replot a file that an earlier run wrote.
	plots, replot string
}

func (o *options) bind(flags *flag.FlagSet) {
	flags.IntVar(&o.bench.Objects, "objects", 1000, "how many objects are created at once")
	flags.IntVar(&o.bench.Rounds, "rounds", 5, "how often each implementation is measured")
	flags.IntVar(&o.bench.LongRounds, "long-rounds", 3, "the number of rounds for memory and Erus, which take minutes a round, if it is lower than -rounds")
	flags.IntVar(&o.bench.SlowRounds, "slow-rounds", 1, "the number of rounds for implementations that need minutes for a burst because of their own rate limits")
	flags.IntVar(&o.bench.MemoryFrom, "memory-from", 0, "the lower number of objects between which memory per object is measured; half of -objects if 0")
	flags.IntVar(&o.bench.MemoryTo, "memory-to", 0, "the upper number of objects between which memory per object is measured; five times -objects if 0")
	flags.DurationVar(&o.bench.MemoryRest, "memory-rest", 10*time.Second, "how long a process is idle before its memory is read")
	flags.StringVar(&o.bench.Profiles, "profiles", "", "a directory for heap profiles of the processes whose memory is measured")
	flags.IntVar(&o.bench.Noisy, "noisy", 5000, "the number of objects in the namespace whose objects change all the time")
	flags.IntVar(&o.bench.Failovers, "failovers", 20, "how often the leader is killed")
	flags.Var(&o.bench.Growth, "growth", "the `numbers` of objects at which the growth of cost is measured, ascending, separated by commas; from a tenth of -objects to ten times as many if empty")
	flags.IntVar(&o.bench.GrowthRounds, "growth-rounds", 1, "how often each implementation is measured at each of them")
	flags.DurationVar(&o.bench.Timeout, "timeout", 10*time.Minute, "how long one run of an implementation may take; for growth, at least 200ms for each object")
	flags.StringVar(&o.implementations, "contestants", "", "the `names` of the implementations to compare, separated by commas; all if empty")
	flags.StringVar(&o.only, "only", "", "the `names` of the measurements, separated by commas; all if empty")
	flags.StringVar(&o.json, "json", "results.json", "the file that the results are written to")
	flags.StringVar(&o.plots, "plots", "", "a directory for the figures of the growth of cost, as SVG; none if empty")
	flags.StringVar(&o.replot, "replot", "", "a file that an earlier run wrote with -json: only draw its figures into -plots, measure nothing")
}

func run() error {
	if len(os.Args) == 3 && os.Args[1] == admission.Command {
		return admission.Main(os.Args[2])
	}
	var o options
	o.bind(flag.CommandLine)
	flag.Parse()
	if o.replot != "" {
		return o.redraw()
	}
	o.bench.MemoryFrom = cmp.Or(o.bench.MemoryFrom, o.bench.Objects/2)
	o.bench.MemoryTo = cmp.Or(o.bench.MemoryTo, o.bench.Objects*5)
	if n := o.bench.Objects; len(o.bench.Growth) == 0 {
		o.bench.Growth = rows.Counts{max(n/10, 1), max(n*3/10, 2), max(n, 3), 3 * max(n, 3), 10 * max(n, 3)}
	}
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return errors.New("KUBEBUILDER_ASSETS is not set: use 'make bench', or set it to the output of hack/binaries.sh")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()

	groups, err := o.choose()
	if err != nil {
		return err
	}
	if err := build(ctx, o.bench.Implementations); err != nil {
		return err
	}
	o.bench.Out = os.Stderr
	o.bench.Report = &report.Report{Started: time.Now(), Machine: report.ThisMachine(), Options: map[string]string{}}
	flag.VisitAll(func(f *flag.Flag) { o.bench.Options[f.Name] = f.Value.String() })
	return o.measure(ctx, groups)
}

// measure runs the measurements one after the other. The results from before a failure
// or an interruption are printed too.
func (o *options) measure(ctx context.Context, groups []rows.Group) error {
	b := &o.bench
	for _, group := range groups {
		if err := group.Run(b, ctx); err != nil {
			b.Fail(group.Name, err)
		}
	}
	b.Ended, b.Machine.After = time.Now(), report.Load()
	b.Print(os.Stdout)
	if err := b.Write(o.json); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if o.plots != "" {
		if err := plot.Draw(b.Report, o.plots); err != nil {
			return err
		}
	}
	if n := len(b.Failures); n > 0 {
		return fmt.Errorf("%d measurements could not be made", n)
	}
	return nil
}

// redraw draws the results of an earlier run.
func (o *options) redraw() error {
	if o.plots == "" {
		return errors.New("-replot needs -plots, the directory to draw into")
	}
	r, err := report.Read(o.replot)
	if err != nil {
		return err
	}
	return plot.Draw(r, o.plots)
}

// choose selects the implementations and the measurements that the flags name.
func (o *options) choose() ([]rows.Group, error) {
	var err error
	if o.bench.Implementations, err = pick(o.implementations, implementation.All(), func(c *implementation.Implementation) string { return c.Name }); err != nil {
		return nil, err
	}
	groups, err := pick(o.only, rows.Groups(), func(g rows.Group) string { return g.Name })
	if err != nil {
		return nil, err
	}
	return groups, o.drawable(groups)
}

// drawable returns an error if the figures cannot be drawn from what is measured. It is
// called before the measurements, which take hours.
func (o *options) drawable(groups []rows.Group) error {
	growth := slices.ContainsFunc(groups, func(g rows.Group) bool { return g.Name == "growth" })
	ours := slices.ContainsFunc(o.bench.Implementations, func(c *implementation.Implementation) bool { return c.Name == "ours" })
	if o.plots != "" && (!growth || !ours) {
		return errors.New("-plots needs the measurement growth and the implementation ours")
	}
	return nil
}

func pick[T any](names string, from []T, name func(T) string) ([]T, error) {
	if names == "" {
		return from, nil
	}
	var out []T
	for wanted := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(from, func(t T) bool { return name(t) == wanted })
		if i < 0 {
			return nil, fmt.Errorf("unknown name %q", wanted)
		}
		out = append(out, from[i])
	}
	return out, nil
}

func build(ctx context.Context, implementations []*implementation.Implementation) error {
	programs := []implementation.Program{implementation.Controller, implementation.Webhook, implementation.RawClient}
	for _, c := range implementations {
		if !slices.Contains(programs, c.Program) {
			programs = append(programs, c.Program)
		}
	}
	for _, program := range programs {
		if err := program.Build(ctx); err != nil {
			return err
		}
	}
	return nil
}
