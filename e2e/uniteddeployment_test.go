//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
)

var _ = Describe("a UnitedDeployment", func() {
	It("keeps the replicas of a Deployment until it is deleted", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		target := deployment(ctx, ns, "idle", 1, nil)
		held := &extensionv1.UnitedDeployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "hold"},
			Spec:       extensionv1.UnitedDeploymentSpec{DeploymentName: "idle", Replicas: new(int32(3))},
		}
		settled := func() (int32, error) {
			d := target.DeepCopy()
			err := admin.Get(ctx, client.ObjectKeyFromObject(d), d)
			seen := d.Status
			if d.Generation != seen.ObservedGeneration || seen.Replicas != *d.Spec.Replicas || seen.AvailableReplicas != *d.Spec.Replicas {
				return -1, err
			}
			return *d.Spec.Replicas, err
		}

		Expect(admin.Create(ctx, held)).To(Succeed())
		awaitReady(ns, "uniteddeployment/hold")
		Eventually(settled).Should(Equal(int32(3)))
		Expect(running(ctx, ns, target.Spec.Selector.MatchLabels)).To(HaveLen(3))
		Expect(get(ctx, held).Status.AvailableReplicas).To(Equal(int32(3)))

		By("scaling the Deployment by another client")
		run(kubectl, "-n", ns, "scale", "deployment/idle", "--replicas=1")
		Eventually(settled).Should(Equal(int32(3)))

		By("scaling the UnitedDeployment with kubectl, then deleting it")
		run(kubectl, "-n", ns, "scale", "uniteddeployment/hold", "--replicas=2")
		Eventually(settled).Should(Equal(int32(2)))
		run(kubectl, "-n", ns, "delete", "uniteddeployment/hold")
		Consistently(settled, "3s").Should(Equal(int32(2)))
		run(kubectl, "-n", ns, "scale", "deployment/idle", "--replicas=1")
		Eventually(settled).Should(Equal(int32(1)))
		Consistently(settled, "3s").Should(Equal(int32(1)), "no UnitedDeployment sets the replicas any more")
	})
})
