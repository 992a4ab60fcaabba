//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
)

// As docs/kinds-of-an-install.md has it.
var _ = Describe("an install of some kinds", Serial, func() {
	It("leaves kinds out, whose objects stay, deletes one of them, and has all of them again", func(ctx SpecContext) {
		DeferCleanup(func() { // The other specs need all kinds.
			Expect(applyOperator()).To(Succeed())
			awaitOperator()
		})
		ns := newNamespace(ctx)
		site := fmt.Sprintf(`
apiVersion: app.huolala.cn/v1
kind: App
metadata: {name: site}
spec: {image: "%s", replicas: 1, ports: [{port: 80}]}
`, nginx)
		apply(ns, site)
		apply(ns, fmt.Sprintf(ofAUser, nginx))
		awaitReady(ns, "app.app.huolala.cn/site")
		awaitReady(ns, "modelbox/survivor")
		before := survivorOf(ctx, ns)

		By("leaving four kinds out")
		Expect(try("make deploy KINDS=ModelBox")).Error().NotTo(HaveOccurred())
		awaitOperator()
		for _, configurations := range []string{"validating", "mutating"} {
			Expect(run(kubectl, "get", configurations+"webhookconfiguration", "modelbox-webhook", "-o", "jsonpath={.webhooks[*].rules[*].resources}")).To(Equal(`["modelboxes"]`))
		}
		pod := running(ctx, ns, labelsOf("site"))
		Expect(pod).To(HaveLen(1))
		apply(ns, strings.Replace(site, "replicas: 1", "replicas: 2", 1))
		run(kubectl, "-n", ns, "scale", "modelbox/survivor", "--replicas=3")
		Eventually(func() int { return len(survivorOf(ctx, ns).pods) }).Should(Equal(3), "its kind is reconciled")
		Expect(running(ctx, ns, labelsOf("site"))).To(Equal(pod), "nothing scales the object of another kind, or ends its pod")

		By("deleting a CRD that is left out")
		run(kubectl, "delete", "customresourcedefinition", "apps.app.huolala.cn")
		restart("modelbox-controller")
		awaitOperator()
		run(kubectl, "-n", ns, "scale", "modelbox/survivor", "--replicas=2")
		Eventually(func() int { return len(survivorOf(ctx, ns).pods) }).Should(Equal(2), "a controller that starts without the CRD")

		By("applying the whole install again")
		Expect(applyOperator()).To(Succeed())
		awaitOperator()
		apply(ns, site)
		awaitReady(ns, "app.app.huolala.cn/site")
		Expect(get(ctx, &appv1.App{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "site"}}).Status.ReadyReplicas).To(BeEquivalentTo(1))
		Expect(survivorOf(ctx, ns).deployment).To(Equal(before.deployment))
	})
})
