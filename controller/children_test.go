// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

var _ = Describe("disruption", func() {
	It("is a PodDisruptionBudget as long as there is more than one replica", func(ctx SpecContext) {
		named := metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}
		box := &modelv1.ModelBox{ObjectMeta: named, Spec: modelv1.ModelBoxSpec{
			Image: "nginx:1", Replicas: new(int32(3)), Ports: []modelv1.Port{{Port: 80}},
			Children: modelv1.Children{Disruption: &modelv1.Disruption{MinAvailable: new(intstr.FromString("100%"))}},
		}}
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: named}
		most := func() string {
			if env.Client.Get(ctx, client.ObjectKeyFromObject(budget), budget) != nil {
				return "none"
			}
			return budget.Spec.MaxUnavailable.String()
		}
		Eventually(most).Should(Equal("1"))
		scaleTo := func(n int32) {
			change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Replicas = &n })
		}
		scaleTo(1)
		Eventually(most).Should(Equal("none"))
		scaleTo(200)
		Eventually(most).Should(Equal("1"))
		change(ctx, budget, func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = new(intstr.FromInt32(0)) })
		Eventually(most).Should(Equal("1"))
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Disruption.MinAvailable = new(intstr.FromString("40%")) })
		Eventually(most).Should(Equal("120"))
		change(ctx, box, func(b *modelv1.ModelBox) {
			b.Spec.Disruption.MinAvailable, b.Spec.Disruption.MaxUnavailable = nil, new(intstr.FromString("30%"))
		})
		Eventually(most).Should(Equal("30%"))
		Expect(budget.Spec.MinAvailable).To(BeNil())
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Disruption = nil })
		Eventually(most).Should(Equal("none"))
	})
})
