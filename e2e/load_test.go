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
	// admissionsOfTurn are one create and the updates.
	admissionsOfTurn = 3
	// atOnce are so many that a slow answer does not hold up the rate.
	atOnce = 40
)

// admissions is a steady load of admissions through the API server: ModelBoxes are
// created and updated. These are dry runs, which are admitted as all others and leave
// nothing to do, so that even a busy machine gets as many of them to the webhook as
// the test is to be about.
type admissions struct {
	// box is one that is there.
	box    *modelv1.ModelBox
	stop   context.CancelFunc
	done   sync.WaitGroup
	admits atomic.Int64
	failed atomic.Int64
	begun  time.Time

	mu       sync.Mutex
	failures []string
}

// admitting starts the load, in a namespace of its own.
func admitting(ctx context.Context) *admissions {
	GinkgoHelper()
	box := loadBox(newNamespace(ctx), "load")
	Expect(admin.Create(ctx, box)).To(Succeed())
	ctx, cancel := context.WithCancel(ctx)
	load := &admissions{box: box, stop: cancel, begun: time.Now()}
	turns := make(chan int)
	load.done.Go(func() { pace(ctx, turns) })
	for range atOnce {
		load.done.Go(func() {
			for turn := range turns {
				load.turn(ctx, turn)
			}
		})
	}
	return load
}

// loadBox is paused, so that nothing comes of it where it is stored.
func loadBox(ns, name string) *modelv1.ModelBox {
	return &modelv1.ModelBox{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       modelv1.ModelBoxSpec{Image: nginx, Paused: true, Ports: []modelv1.Port{{Port: 80}}},
	}
}

// pace hands out turns at the rate of the load.
func pace(ctx context.Context, turns chan<- int) {
	defer close(turns)
	ticker := time.NewTicker(admissionsOfTurn * time.Second / admissionsPerSecond)
	defer ticker.Stop()
	for turn := 0; ; turn++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			turns <- turn
		}
	}
}

// turn creates an object and updates the one that is there. Each turn is finished,
// also when the load stops meanwhile.
func (l *admissions) turn(ctx context.Context, turn int) {
	ctx = context.WithoutCancel(ctx)
	l.count(admin.Create(ctx, loadBox(l.box.Namespace, fmt.Sprintf("load-%d", turn)), client.DryRunAll))
	for update := range admissionsOfTurn - 1 {
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

// refusals are what goes wrong when so many objects are created at once, as dry runs,
// that the API server takes every connection it has kept, and opens some to every
// endpoint it is sent to.
func refusals(ctx context.Context) []string {
	errs := make([]error, atOnce)
	var done sync.WaitGroup
	for i := range errs {
		done.Go(func() {
			errs[i] = admin.Create(ctx, loadBox(metav1.NamespaceDefault, fmt.Sprintf("refused-%d", i)), client.DryRunAll)
		})
	}
	done.Wait()
	var refused []string
	for _, err := range errs {
		if err != nil {
			refused = append(refused, err.Error())
		}
	}
	return refused
}

// end stops the load and tells how it went, and the rate in admissions a second.
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

// lostNone stops the load, which must have been one worth the name, and not one
// admission of which may have failed.
func (l *admissions) lostNone(during string) {
	GinkgoHelper()
	rate := l.end(during)
	Expect(l.reported()).To(BeEmpty())
	Expect(rate).To(BeNumerically(">=", 50), "admissions a second, or the test proves too little")
}

// reported are the first failures, for a person.
func (l *admissions) reported() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failures
}
