// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/modelbox-operator/modelbox-operator/kinds/all"
	"github.com/modelbox-operator/modelbox-operator/test/faults"
)

// faultCorpus are plans that failed once, and one for each fault.
//
//go:embed testdata/faults.txt
var faultCorpus string

// faultRunner runs plans.
type faultRunner struct {
	observer *faults.Observer
	// want is the final state of each workload without a fault, and writes the number of its
	// writes.
	want   map[string]string
	writes map[string]int
	// silence is how long watches are silent.
	silence time.Duration
}

var _ = Describe("whatever goes wrong between the controller and the API server", Ordered, ContinueOnFailure, long, func() {
	var runner *faultRunner
	BeforeAll(func() {
		alone()
		ctx, cancel := context.WithCancel(context.Background())
		DeferCleanup(cancel)
		lists := []client.ObjectList{&appsv1.DeploymentList{}, &appsv1.DaemonSetList{}, &corev1.ServiceList{}}
		for _, kind := range all.Kinds {
			list, err := env.Client.Scheme().New(kind.GVK.GroupVersion().WithKind(kind.GVK.Kind + "List"))
			Expect(err).NotTo(HaveOccurred())
			lists = append(lists, list.(client.ObjectList))
		}
		observer, err := faults.Observe(ctx, env.Client, lists...)
		Expect(err).NotTo(HaveOccurred())
		runner = &faultRunner{observer: observer, want: map[string]string{}, writes: map[string]int{}, silence: time.Second}
		if thoroughly {
			runner.silence = 5 * time.Second
		}
		runner.reference(ctx)
	})

	run := func(ctx context.Context, plans []faultPlan) {
		GinkgoHelper()
		var failures []string
		for b, together := range batches(plans) {
			for some := range slices.Chunk(together, 60) {
				failures = append(failures, runner.run(ctx, b, some)...)
			}
		}
		AddReportEntry(fmt.Sprintf("%d plans, %d of them ended otherwise than without a fault", len(plans), len(failures)), ReportEntryVisibilityAlways)
		slices.Sort(failures)
		if len(failures) > 0 {
			Fail("these plans end otherwise than without a fault; add them to controller/testdata/faults.txt:\n" + strings.Join(failures, "\n"))
		}
	}
	It("ends as without it: what ended otherwise once", func(ctx SpecContext) {
		var plans []faultPlan
		for line := range strings.Lines(faultCorpus) {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			p, err := parsePlan(line)
			Expect(err).NotTo(HaveOccurred())
			plans = append(plans, p)
		}
		run(ctx, plans)
	})
	It("ends as without it: random faults", func(ctx SpecContext) {
		if !thoroughly {
			Skip("MODELBOX_LONG=1 runs them")
		}
		seed := uint64(GinkgoRandomSeed())
		AddReportEntry(fmt.Sprintf("seed %d", seed), ReportEntryVisibilityAlways)
		run(ctx, drawn(seed, 600, runner.writes))
	})
})

// faultProcess is a controller process behind a transport.
type faultProcess struct {
	*process
	transport *faults.Transport
}

func newFaultProcess(transport *faults.Transport, clock *clocktesting.FakePassiveClock) *faultProcess {
	GinkgoHelper()
	cfg := rest.CopyConfig(asController)
	cfg.Wrap(transport.Wrap)
	o := unserved()
	o.workers, o.reconcileTimeout = 8, 3*time.Second
	p := launchKinds(cfg, &o, clock, func(managerOptions *ctrl.Options) {
		managerOptions.Logger = klog.New(log.NullLogSink{}) // Hundreds of errors are expected.
	})
	DeferCleanup(p.cancel)
	Eventually(p.Elected()).Should(BeClosed())
	return &faultProcess{p, transport}
}

// planRun is the run of one plan.
type planRun struct {
	faultPlan
	workloadRun
	faultWorkload
	bystanding map[client.Object]string
}

// reference runs all workloads without a fault, and stores their final states.
func (r *faultRunner) reference(ctx context.Context) {
	GinkgoHelper()
	var plans []faultPlan
	for _, w := range faultWorkloads {
		plans = append(plans, faultPlan{workload: w.name})
	}
	Expect(r.run(ctx, batch{}, plans)).To(BeEmpty(), "without a fault")
}

// run runs plans at the same time, and returns the failures.
func (r *faultRunner) run(ctx context.Context, b batch, plans []faultPlan) []string {
	GinkgoHelper()
	began := time.Now()
	schedule, slot := slotAfter(began)
	clock := clocktesting.NewFakePassiveClock(began)
	transport := faults.NewTransport()
	process := newFaultProcess(transport, clock)
	runs := make([]*planRun, len(plans))
	for i, p := range plans {
		runs[i] = &planRun{faultPlan: p, workloadRun: workloadRun{ctx: ctx, namespace: newNamespace(), slot: schedule}, faultWorkload: workloadOf(p.workload)}
	}
	each(runs, (*planRun).begin)
	each(runs, func(a *planRun) { transport.Plan(a.namespace, a.requests) })
	old, resources := versionNow(ctx), strings.Split(b.resources, ",")

	var other *faultProcess
	switch b.stream {
	case silent:
		transport.PauseWatches(resources...)
	case twoLeaders:
		transport.PauseWatches(resources...)
		other = newFaultProcess(faults.NewTransport(), clock)
	}
	each(runs, func(a *planRun) { a.do(a.edit) })
	clock.SetTime(slot.Add(time.Second))
	each(runs, func(a *planRun) { a.do(a.poke) })
	switch b.stream {
	case cut:
		transport.CloseWatches(resources...)
	case silent, twoLeaders:
		pause(ctx, r.silence)
		transport.ResumeWatches(resources...)
	}
	if b.kills {
		each(runs, func(a *planRun) { a.awaitDeath(transport) })
		_ = process.end()
		process = newFaultProcess(faults.NewTransport(), clock)
	}
	if b.stream == rewound || b.stream == restarted {
		each(runs, func(a *planRun) { r.converged(a, time.Minute) })
	}
	switch b.stream {
	case rewound:
		process.transport.Rewind(old, resources...)
		Eventually(func() bool { return process.transport.Relisted(resources...) }).Should(BeTrue())
		pause(ctx, r.silence/2)
		process.transport.ResumeWatches(resources...)
	case restarted:
		_ = process.end()
		late := faults.NewTransport()
		late.StartFrom(old, resources...)
		process = newFaultProcess(late, clock)
		pause(ctx, r.silence/2)
		late.ResumeWatches(resources...)
	}
	each(runs, func(a *planRun) { r.converged(a, time.Minute) })
	r.quiet()
	Expect(r.observer.Err()).NotTo(HaveOccurred(), "the test missed events")
	var failures []string
	for _, a := range runs {
		if difference := r.difference(a); difference != "" {
			failures = append(failures, fmt.Sprintf("%s: %s", a.faultPlan, difference))
		}
		if _, known := r.want[a.workload]; !known { // This is the run without a fault.
			r.want[a.workload] = a.state()
			r.writes[a.workload], _ = transport.Writes(a.namespace)
		}
	}
	_ = process.end()
	if other != nil {
		_ = other.end()
	}
	// Later processes would list the objects.
	each(runs, func(a *planRun) { removeAll(ctx, a.namespace) })
	return failures
}

func (a *planRun) do(step func(*workloadRun)) {
	if step != nil {
		step(&a.workloadRun)
	}
}

// begin creates the objects that exist before the fault.
func (a *planRun) begin() {
	GinkgoHelper()
	a.bystanding = map[client.Object]string{}
	for _, obj := range a.bystanders() {
		a.create(obj)
		a.bystanding[obj] = obj.GetResourceVersion()
	}
	a.do(a.prepare)
}

// awaitDeath waits for the fault that ends the process. If another fault prevents it, the
// process is ended nevertheless, at another time.
func (a *planRun) awaitDeath(transport *faults.Transport) {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if transport.Dead(a.namespace) {
			return
		}
		pause(a.ctx, 20*time.Millisecond)
	}
}

// converged waits until the final state is the expected one, or for a limited time.
func (r *faultRunner) converged(a *planRun, within time.Duration) {
	for deadline := time.Now().Add(within); time.Now().Before(deadline); {
		if r.difference(a) == "" {
			return
		}
		pause(a.ctx, 150*time.Millisecond)
	}
}

// difference returns the differences to the final state without a fault, "" if there is none.
func (r *faultRunner) difference(a *planRun) string {
	var wrong []string
	if orphans := r.observer.Orphans(a.namespace); len(orphans) > 0 {
		wrong = append(wrong, fmt.Sprintf("created for an owner that had been deleted: %v", orphans))
	}
	for obj, version := range a.bystanding {
		if err := env.Client.Get(a.ctx, client.ObjectKeyFromObject(obj), obj); err != nil || obj.GetResourceVersion() != version {
			wrong = append(wrong, fmt.Sprintf("%T that is not ours was written: %v", obj, err))
		}
	}
	if diff := lineDiff(countLines(a.changes), countLines(r.changes(a))); diff != "" {
		wrong = append(wrong, "writes:"+diff)
	}
	state := a.state()
	want, known := r.want[a.workload]
	if a.forgets() { // No process has the time of the restart.
		state, want = strings.ReplaceAll(state, "started false", "started true"), strings.ReplaceAll(want, "started false", "started true")
	}
	if strings.Contains(state, "not seen") {
		wrong = append(wrong, "not every object is reconciled")
	}
	if diff := lineDiff(strings.Split(want, "\n"), strings.Split(state, "\n")); known && diff != "" {
		wrong = append(wrong, "state:"+diff)
	}
	return strings.Join(wrong, "\n")
}

func countLines(changes map[string]int) []string {
	var lines []string
	for what, n := range changes {
		lines = append(lines, fmt.Sprintf("%d x %s", n, what))
	}
	return lines
}

// lineDiff returns the lines that only one of two lists has: those without a fault with -,
// the others with +.
func lineDiff(want, got []string) string {
	var diff []string
	add := func(sign string, lines, others []string) {
		for _, line := range lines {
			if !slices.Contains(others, line) {
				diff = append(diff, "\n    "+sign+line)
			}
		}
	}
	add("- ", want, got)
	add("+ ", got, want)
	slices.Sort(diff)
	return strings.Join(diff, "")
}

// forgets reports whether the process that restarts a Deployment may end, or may not get the
// response for the restart: history then has no time.
func (p faultPlan) forgets() bool {
	return p.stream == restarted || p.stream == twoLeaders || slices.ContainsFunc(slices.Collect(maps.Values(p.requests)), func(f faults.RequestFault) bool {
		return f.Kills() || f.TakesEffect()
	})
}

// changes returns the number of events of children and targets in a run, by event.
func (r *faultRunner) changes(a *planRun) map[string]int {
	changes := r.observer.Counts(a.namespace)
	maps.DeleteFunc(changes, func(what string, _ int) bool {
		kind, name := strings.Fields(what)[1], strings.Fields(what)[2]
		owner := slices.Contains([]string{"ModelBox", "App", "Genericdaemon", "UnitedDeployment"}, kind) || kind == "Eru" && name == "eru"
		return owner || name == "bystander"
	})
	return changes
}

// quiet waits until the controller sends no more requests.
func (r *faultRunner) quiet() {
	GinkgoHelper()
	last, since := -1, time.Now()
	Eventually(func() bool {
		requests, err := env.Requests(controllerUser)
		Expect(err).NotTo(HaveOccurred())
		if len(requests) != last {
			last, since = len(requests), time.Now()
		}
		return time.Since(since) > 400*time.Millisecond
	}, time.Minute, 50*time.Millisecond).Should(BeTrue(), "the controller does not stop writing")
}

// versionNow returns the current resourceVersion.
func versionNow(ctx context.Context) string {
	GinkgoHelper()
	list := &corev1.NamespaceList{}
	Expect(env.Client.List(ctx, list, client.Limit(1))).To(Succeed())
	return list.ResourceVersion
}

// pause waits while a fault lasts.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
