// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures what the operator costs, beside a raw client that makes the same writes and
// a plain controller-runtime operator, and prints a table. See docs/performance.md.
//
//	make bench
//	make bench ROUNDS=1 OBJECTS=100 ONLY=created,memory
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// bench is one run of the benchmarks.
type bench struct {
	objects, rounds, many int
	// values are those of each round by their row and quantity, in the order of rows.
	rows   []string
	values map[string][]float64
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == admissions {
		if err := measureAdmissions(os.Args[2], admissionv1.Operation(os.Args[3])); err != nil {
			fail(err)
		}
		return
	}
	if err := run(); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

func run() error {
	b := &bench{values: map[string][]float64{}}
	flag.IntVar(&b.objects, "objects", 1000, "how many objects are created at once")
	flag.IntVar(&b.rounds, "rounds", 3, "how often everything is measured")
	flag.IntVar(&b.many, "many", 0, "memory is also measured with this many objects, such as 10000; 0 turns that off")
	only := flag.String("only", "created,webhook,latency,memory,noisy,tenants", "what is measured")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return errors.New("KUBEBUILDER_ASSETS is not set: use 'make bench', or set it to the output of hack/binaries.sh")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := build(ctx); err != nil {
		return err
	}
	measurements := map[string]func(context.Context) error{
		"created": b.created, "webhook": b.webhook, "latency": b.latency, "memory": b.memory, "noisy": b.noisy, "tenants": b.tenants,
	}
	var failures []error
	for round := range b.rounds {
		for name := range strings.SplitSeq(*only, ",") {
			measure, ok := measurements[name]
			if !ok {
				return fmt.Errorf("-only: there is no measurement %q", name)
			}
			fmt.Fprintf(os.Stderr, "%s  round %d of %d: %s\n", time.Now().Format(time.TimeOnly), round+1, b.rounds, name)
			if err := measure(ctx); err != nil {
				failures = append(failures, fmt.Errorf("%s: %w", name, err))
			}
			if ctx.Err() != nil {
				b.print() // What was measured before.
				return context.Cause(ctx)
			}
		}
	}
	b.print()
	return errors.Join(failures...)
}

// record keeps the value of a round.
func (b *bench) record(row string, value float64) {
	if !slices.Contains(b.rows, row) {
		b.rows = append(b.rows, row)
	}
	b.values[row] = append(b.values[row], value)
}

// ratio records the last value of one row divided by that of another.
func (b *bench) ratio(row, of, by string) {
	if d := b.last(by); d != 0 {
		b.record(row, b.last(of)/d)
	}
}

func (b *bench) last(row string) float64 {
	values := b.values[row]
	if len(values) == 0 {
		return 0
	}
	return values[len(values)-1]
}

func (b *bench) print() {
	load, _ := os.ReadFile("/proc/loadavg") // Elsewhere it says nothing.
	fmt.Printf("%d objects, %d rounds; load %s\n", b.objects, b.rounds, strings.TrimSpace(string(load)))
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tMEDIAN\tMIN\tMAX")
	for _, row := range b.rows {
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\n", row, quantile(b.values[row], 0.5), slices.Min(b.values[row]), slices.Max(b.values[row]))
	}
	_ = w.Flush() // Standard output.
}

// quantile returns a value of which at least that share is not higher.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
