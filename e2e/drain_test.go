//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// How often the webhook is restarted, and its certificate renewed, under load.
const rounds = 5

var _ = Describe("no admission request is lost", disturbing-1, func() {
	It("during rolling restarts of the webhook", func(ctx SpecContext) {
		alone("webhook")
		load := admitting(ctx, often)
		for range rounds {
			restart("modelbox-webhook")
		}
		load.lostNone("5 rolling restarts")
	})

	It("during renewals of its certificate", func(ctx SpecContext) {
		alone("webhook")
		load := admitting(ctx, often)
		for range rounds {
			renew(ctx)
			awaitServed(ctx)
		}
		load.lostNone("5 renewals of the certificate")
	})

	It("when a node is drained", func(ctx SpecContext) {
		alone("controller", "webhook")
		node := podsOf(ctx, "modelbox-webhook")[0].Spec.NodeName
		DeferCleanup(func() {
			run(kubectl, "uncordon", node)
			run(kubectl, "-n", system, "rollout", "status", "deployment", "modelbox-webhook", "--timeout=240s")
		})
		load := admitting(ctx, often)
		run(kubectl, "drain", node, "--pod-selector=app.kubernetes.io/name in (modelbox-webhook, modelbox-controller)", "--timeout=200s")
		load.lostNone("the drain of a node")
		Expect(nodesOf(podsOf(ctx, "modelbox-webhook"))).NotTo(ContainElement(node))
	})

	// This spec shows that the others would fail if the drain did not work.
	It("because of the drain: without it requests are lost", Serial, func(ctx SpecContext) {
		DeferCleanup(func(ctx SpecContext) {
			setArgs(ctx, "modelbox-webhook")
			// The old pods still close their connections without a drain, and may end
			// before the nodes stop sending new connections to them.
			Eventually(podsWithArgs).WithArguments(ctx, "modelbox-webhook").Should(BeEmpty())
			Eventually(dryRunErrors).WithArguments(ctx).Should(BeEmpty())
		})
		setArgs(ctx, "modelbox-webhook", "--shutdown-delay=0s")
		load := admitting(ctx, often)
		for range 4 * rounds {
			restart("modelbox-webhook")
			if len(load.reported()) > 0 {
				break
			}
		}
		load.end("rolling restarts without the drain")
		Expect(load.reported()).NotTo(BeEmpty(), "the other specs could not fail without the drain either")
	})
})

const (
	// often is the number of admissions a second that shows a gap of milliseconds, and seldom one that
	// shows a gap of a second. Specs of minutes have that, and leave the machine to the others.
	often, seldom = 75, 15
	// admissionsPerBatch is the number of admissions in a batch: one create and the
	// updates.
	admissionsPerBatch = 3
	// parallelRequests is high enough to keep the rate when some responses are slow.
	parallelRequests = 40
)

// admissions is a constant load of admission requests through the API server:
// ModelBoxes are created and updated. The requests are dry runs: they call the webhook
// as other requests do, but cause no work for the API server and the controller after
// that, so that also a busy machine reaches the rate.
type admissions struct {
	// box is an existing object, which is updated.
	box    *modelv1.ModelBox
	rate   int
	stop   context.CancelFunc
	done   sync.WaitGroup
	admits atomic.Int64
	failed atomic.Int64
	begun  time.Time

	mu       sync.Mutex
	failures []string
}

// admitting starts a load of so many admissions a second in a new namespace.
func admitting(ctx context.Context, rate int) *admissions {
	GinkgoHelper()
	box := loadBox(newNamespace(ctx), "load")
	Expect(admin.Create(ctx, box)).To(Succeed())
	ctx, cancel := context.WithCancel(ctx)
	load := &admissions{box: box, rate: rate, stop: cancel, begun: time.Now()}
	batches := make(chan int)
	load.done.Go(func() { load.pace(ctx, batches) })
	for range parallelRequests {
		load.done.Go(func() {
			for batch := range batches {
				load.send(ctx, batch)
			}
		})
	}
	return load
}

// loadBox returns a paused ModelBox, so that the controller creates nothing for it.
func loadBox(ns, name string) *modelv1.ModelBox {
	return &modelv1.ModelBox{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       modelv1.ModelBoxSpec{Image: nginx, Paused: true, Ports: []modelv1.Port{{Port: 80}}},
	}
}

// pace sends the numbers of batches at the rate of the load.
func (l *admissions) pace(ctx context.Context, batches chan<- int) {
	defer close(batches)
	ticker := time.NewTicker(admissionsPerBatch * time.Second / time.Duration(l.rate))
	defer ticker.Stop()
	for batch := 0; ; batch++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			batches <- batch
		}
	}
}

// send sends one batch: it creates an object and updates the existing one. It completes
// the batch also when the load is stopped.
func (l *admissions) send(ctx context.Context, batch int) {
	ctx = context.WithoutCancel(ctx)
	l.count(admin.Create(ctx, loadBox(l.box.Namespace, fmt.Sprintf("load-%d", batch)), client.DryRunAll))
	for update := range admissionsPerBatch - 1 {
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, update+2)
		l.count(admin.Patch(ctx, l.box.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.DryRunAll))
	}
}

func (l *admissions) count(err error) {
	l.admits.Add(1)
	if err == nil {
		return
	}
	l.failed.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.failures) < 5 {
		l.failures = append(l.failures, time.Now().Format("15:04:05.000 ")+err.Error())
	}
}

// dryRunErrors returns the errors of many creations at the same time, as dry runs. They
// are so many that the API server uses all its kept connections, and opens new ones to
// every endpoint of the webhook.
func dryRunErrors(ctx context.Context) []string {
	errs := make([]error, parallelRequests)
	var done sync.WaitGroup
	for i := range errs {
		done.Go(func() {
			errs[i] = admin.Create(ctx, loadBox(metav1.NamespaceDefault, fmt.Sprintf("refused-%d", i)), client.DryRunAll)
		})
	}
	done.Wait()
	var failed []string
	for _, err := range errs {
		if err != nil {
			failed = append(failed, err.Error())
		}
	}
	return failed
}

// end stops the load, and reports its result.
func (l *admissions) end(what string) {
	GinkgoHelper()
	l.stop()
	l.done.Wait()
	took := time.Since(l.begun)
	AddReportEntry(what, fmt.Sprintf("%d of %d admissions failed in %s, %.0f a second",
		l.failed.Load(), l.admits.Load(), took.Round(time.Second), float64(l.admits.Load())/took.Seconds()), ReportEntryVisibilityAlways)
}

// lostNone stops the load and expects that no admission has failed, of so many that the load has worked.
// How many a second there are depends on the machine, so it is reported only; that they are enough
// is what the spec without the drain shows.
func (l *admissions) lostNone(during string) {
	GinkgoHelper()
	l.end(during)
	Expect(l.reported()).To(BeEmpty())
	Expect(l.admits.Load()).To(BeNumerically(">=", 200))
}

// reported returns the first failures.
func (l *admissions) reported() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failures
}
