//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
)

var _ = Describe("a UnitedDeployment", func() {
	It("holds the number of a Deployment's pods, and lets go of it", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		target := deployment(ctx, ns, "idle", 1, nil)
		held := &extensionv1.UnitedDeployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "hold"},
			Spec:       extensionv1.UnitedDeploymentSpec{DeploymentName: "idle", Replicas: new(int32(3))},
		}
		pods := func() []corev1.Pod { return running(ctx, ns, target.Spec.Selector.MatchLabels) }

		Expect(admin.Create(ctx, held)).To(Succeed())
		awaitReady(ns, "uniteddeployment/hold")
		Eventually(pods).Should(HaveLen(3))
		Expect(get(ctx, held).Status.AvailableReplicas).To(Equal(int32(3)))

		By("somebody else scaling the Deployment")
		run(kubectl, "-n", ns, "scale", "deployment/idle", "--replicas=1")
		Eventually(func() string {
			return run(kubectl, "-n", ns, "get", "deployment", "idle", "-o", "jsonpath={.spec.replicas} {.status.availableReplicas}")
		}).Should(Equal("3 3"))

		By("kubectl scale on the holder, then deleting the holder")
		run(kubectl, "-n", ns, "scale", "uniteddeployment/hold", "--replicas=2")
		Eventually(pods).Should(HaveLen(2))
		run(kubectl, "-n", ns, "delete", "uniteddeployment/hold")
		Consistently(pods, "3s").Should(HaveLen(2))
		run(kubectl, "-n", ns, "scale", "deployment/idle", "--replicas=1")
		Eventually(pods).Should(HaveLen(1))
	})
})
