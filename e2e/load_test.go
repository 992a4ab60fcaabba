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

const (
	admissionsPerSecond = 75
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
	stop   context.CancelFunc
	done   sync.WaitGroup
	admits atomic.Int64
	failed atomic.Int64
	begun  time.Time

	mu       sync.Mutex
	failures []string
}

// admitting starts the load in a new namespace.
func admitting(ctx context.Context) *admissions {
	GinkgoHelper()
	box := loadBox(newNamespace(ctx), "load")
	Expect(admin.Create(ctx, box)).To(Succeed())
	ctx, cancel := context.WithCancel(ctx)
	load := &admissions{box: box, stop: cancel, begun: time.Now()}
	batches := make(chan int)
	load.done.Go(func() { pace(ctx, batches) })
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
func pace(ctx context.Context, batches chan<- int) {
	defer close(batches)
	ticker := time.NewTicker(admissionsPerBatch * time.Second / admissionsPerSecond)
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

// end stops the load, reports its result, and returns the rate in admissions a second.
func (l *admissions) end(what string) float64 {
	GinkgoHelper()
	l.stop()
	l.done.Wait()
	took := time.Since(l.begun)
	rate := float64(l.admits.Load()) / took.Seconds()
	AddReportEntry(what, fmt.Sprintf("%d of %d admissions failed in %s, %.0f a second", l.failed.Load(), l.admits.Load(), took.Round(time.Second), rate),
		ReportEntryVisibilityAlways)
	return rate
}

// lostNone stops the load and expects that no admission has failed, and that the rate
// was high enough to prove it.
func (l *admissions) lostNone(during string) {
	GinkgoHelper()
	rate := l.end(during)
	Expect(l.reported()).To(BeEmpty())
	Expect(rate).To(BeNumerically(">=", 50), "admissions a second: the load was too low for this test")
}

// reported returns the first failures.
func (l *admissions) reported() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failures
}
