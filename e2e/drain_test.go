//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// How often the webhook is restarted, and its certificate renewed, under load.
const rounds = 5

var _ = Describe("no admission request is lost", Serial, func() {
	It("during rolling restarts of the webhook", func(ctx SpecContext) {
		load := admitting(ctx)
		for range rounds {
			restart("modelbox-webhook")
		}
		load.lostNone("5 rolling restarts")
	})

	It("during renewals of its certificate", func(ctx SpecContext) {
		load := admitting(ctx)
		for range rounds {
			renew(ctx)
			awaitServed(ctx)
		}
		load.lostNone("5 renewals of the certificate")
	})

	It("when a node is drained", func(ctx SpecContext) {
		node := podsOf(ctx, "modelbox-webhook")[0].Spec.NodeName
		DeferCleanup(func() {
			run(kubectl, "uncordon", node)
			run(kubectl, "-n", system, "rollout", "status", "deployment", "modelbox-webhook", "--timeout=240s")
		})
		load := admitting(ctx)
		run(kubectl, "drain", node, "--pod-selector=app.kubernetes.io/name in (modelbox-webhook, modelbox-controller)", "--timeout=200s")
		load.lostNone("the drain of a node")
		Expect(nodesOf(podsOf(ctx, "modelbox-webhook"))).NotTo(ContainElement(node))
	})

	// This spec shows that the others would fail if the drain did not work.
	It("because of the drain: without it requests are lost", func(ctx SpecContext) {
		DeferCleanup(func(ctx SpecContext) {
			setArgs(ctx, "modelbox-webhook")
			// The old pods still close their connections without a drain, and may end
			// before the nodes stop sending new connections to them.
			Eventually(podsWithArgs).WithArguments(ctx, "modelbox-webhook").Should(BeEmpty())
			Eventually(dryRunErrors).WithArguments(ctx).Should(BeEmpty())
		})
		setArgs(ctx, "modelbox-webhook", "--drain=0s")
		load := admitting(ctx)
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
