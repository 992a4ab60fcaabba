//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
)

const daemonManifest = `
apiVersion: mydomain.com/v1beta1
kind: Genericdaemon
metadata:
  name: agent
spec:
  label: e2e-logs=%s
  image: %s
`

var _ = Describe("a Genericdaemon", func() {
	It("runs on the nodes with its label, also after the label moves", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		first, second := nodes(ctx)[0].Name, nodes(ctx)[1].Name
		daemon := &mydomainv1beta1.Genericdaemon{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "agent"}}
		on := func() []string { return nodesOf(running(ctx, ns, labelsOf("agent"))) }

		apply(ns, fmt.Sprintf(daemonManifest, ns, nginx))
		Eventually(readyCondition(ctx, daemon)).Should(Equal("False NoMatchingNodes"))
		Eventually(func() string {
			return run(kubectl, "-n", ns, "get", "events", "-o", "jsonpath={.items[*].reason}")
		}).Should(ContainSubstring("NoMatchingNodes"))

		By("labelling the first node")
		label(first, ns)
		awaitReady(ns, "genericdaemon/agent")
		Eventually(on).Should(ConsistOf(first))
		Expect(get(ctx, daemon).Status.Installed).To(Equal(int32(1)))

		By("moving the label to the second")
		run(kubectl, "label", "node", first, "e2e-logs-")
		label(second, ns)
		Eventually(on).Should(ConsistOf(second))
		awaitReady(ns, "genericdaemon/agent")

		By("selecting every node, with the same DaemonSet")
		uid := run(kubectl, "-n", ns, "get", "daemonset", "agent", "-o", "jsonpath={.metadata.uid}")
		run(kubectl, "-n", ns, "patch", "genericdaemon", "agent", "--type=merge", "-p", `{"spec":{"label":""}}`)
		Eventually(on).Should(ConsistOf(first, second))
		awaitReady(ns, "genericdaemon/agent")
		Expect(run(kubectl, "-n", ns, "get", "daemonset", "agent", "-o", "jsonpath={.metadata.uid}")).To(Equal(uid))
	})
})

// label sets the Genericdaemon's label on a node, and removes it after the spec.
func label(node, value string) {
	GinkgoHelper()
	run(kubectl, "label", "--overwrite", "node", node, "e2e-logs="+value)
	DeferCleanup(func() { run(kubectl, "label", "node", node, "e2e-logs-") })
}
