// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/modelbox-operator/modelbox-operator/test/faults"
)

func TestDefaultReconcileTimeout(t *testing.T) {
	t.Parallel()
	var o options
	o.bind(flag.NewFlagSet("controller", flag.ContinueOnError))
	// Seven requests that are as slow as the lease allows, and one that the API server ends
	// after a minute.
	if o.reconcileTimeout < 7*renewDeadline/2 || o.reconcileTimeout <= time.Minute {
		t.Errorf("an attempt may take %s, which is too short for a slow API server", o.reconcileTimeout)
	}
}

var _ = Describe("a request without an answer", Ordered, func() {
	BeforeAll(func() {
		stop() // Only the process of this spec may reconcile.
		DeferCleanup(start)
	})
	for _, kind := range []string{"ModelBox", "App", "Genericdaemon"} {
		It("ends the attempt to reconcile and no other: "+kind, func(ctx SpecContext) {
			transport := faults.NewTransport()
			cfg := rest.CopyConfig(asController)
			cfg.Wrap(transport.Wrap)
			// One worker, so that no object is reconciled while another one waits.
			o := options{metricsAddress: "0", probeAddress: "0", pprofAddress: "0", workers: 1, reconcileTimeout: 2 * time.Second}
			mgr := newManager(cfg, &o)
			for _, add := range o.kinds() {
				Expect(add(mgr, clock.RealClock{})).To(Succeed())
			}
			running, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- mgr.Start(running) }()
			DeferCleanup(func() {
				cancel()
				Eventually(done).Should(Receive(BeNil()))
			})

			g := guarantees[kind]
			stuck := g.object(metav1.ObjectMeta{Namespace: newNamespace(), Name: "stuck"})
			well := g.object(metav1.ObjectMeta{Namespace: newNamespace(), Name: "well"})
			transport.Plan(stuck.GetNamespace(), map[int]faults.RequestFault{1: faults.NoAnswer, 2: faults.NoAnswer})
			Expect(env.Client.Create(ctx, stuck)).To(Succeed())
			Eventually(func() int {
				_, hit := transport.Writes(stuck.GetNamespace())
				return hit
			}).Should(BeNumerically(">=", 1))
			Expect(env.Client.Create(ctx, well)).To(Succeed())
			Eventually(readiness(ctx, well)).Should(HavePrefix("False "))
			Eventually(readiness(ctx, stuck)).Should(HavePrefix("False "), "it is not retried")
			_, hit := transport.Writes(stuck.GetNamespace())
			Expect(hit).To(Equal(2))
		})
	}
})
