// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
)

var _ = Describe("a UnitedDeployment", func() {
	var (
		ctx   context.Context
		named metav1.ObjectMeta
		ud    *extensionv1.UnitedDeployment
	)
	BeforeEach(func() {
		ctx, named = context.Background(), metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}
		ud = united(named, "holder", 2)
	})
	replicas := func() int32 { return *get(ctx, &appsv1.Deployment{ObjectMeta: named}).Spec.Replicas }

	It("waits for its Deployment, holds its count by one write, and leaves it at that when it goes", func() {
		Expect(env.Client.Create(ctx, ud)).To(Succeed())
		Eventually(verdict(ctx, ud)).Should(Equal("False TargetNotFound"))
		existing(ctx, named)
		Eventually(replicas).Should(BeEquivalentTo(2))
		rollOut(ctx, named)
		Eventually(verdict(ctx, ud)).Should(Equal("True Ready"))
		Expect(ud.Status.AvailableReplicas).To(BeEquivalentTo(2))
		Expect(ud.Status.Selector).To(Equal("somebody=else"))

		By("somebody else scales it")
		_, mark := writes(named.Namespace, 0)
		change(ctx, &appsv1.Deployment{ObjectMeta: named}, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(7)) })
		Eventually(replicas).Should(BeEquivalentTo(2))
		count, _ := writes(named.Namespace, mark)
		Expect(count).To(HaveKeyWithValue("patch deployments/scale 200", 1))
		Expect(count).NotTo(HaveKey(ContainSubstring("deployments 200")))

		Expect(env.Client.Delete(ctx, ud)).To(Succeed())
		change(ctx, &appsv1.Deployment{ObjectMeta: named}, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(5)) })
		Consistently(replicas, "300ms").Should(BeEquivalentTo(5))
	})

	It("yields to an older one, and takes over when that goes", func() {
		existing(ctx, named)
		Expect(env.Client.Create(ctx, ud)).To(Succeed())
		Eventually(replicas).Should(BeEquivalentTo(2))
		rollOut(ctx, named)
		Eventually(verdict(ctx, ud)).Should(Equal("True Ready"))
		// Of two of the same second the smaller uid is the older, and uids are random:
		// the second must have passed.
		younger := united(named, "younger", 9)
		Eventually(func() metav1.Time { return metav1.Now() }).Should(Satisfy(func(now metav1.Time) bool {
			return now.Unix() > ud.CreationTimestamp.Unix()
		}))
		Expect(env.Client.Create(ctx, younger)).To(Succeed())
		Eventually(verdict(ctx, younger)).Should(Equal("False Conflict"))
		Expect(younger.Status.Conditions[0].Message).To(ContainSubstring(`"holder" is older`))
		_, mark := writes(named.Namespace, 0)
		Consistently(func() string {
			count, _ := writes(named.Namespace, mark)
			return describe(count)
		}, "500ms").Should(BeEmpty(), "nobody flaps")
		Expect(replicas()).To(BeEquivalentTo(2))
		Expect(env.Client.Delete(ctx, ud)).To(Succeed())
		Eventually(replicas).Should(BeEquivalentTo(9))
	})

	It("yields to an autoscaler and to the ModelBox that owns the Deployment", func() {
		existing(ctx, named)
		scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: named, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, MaxReplicas: 3,
		}}
		Expect(env.Client.Create(ctx, scaler)).To(Succeed())
		known(ctx, scaler)
		Expect(env.Client.Create(ctx, ud)).To(Succeed())
		Eventually(verdict(ctx, ud)).Should(Equal("False Conflict"))
		Expect(replicas()).To(BeEquivalentTo(1))
		Expect(env.Client.Delete(ctx, scaler)).To(Succeed())
		Eventually(replicas).Should(BeEquivalentTo(2))

		box := guarantees["ModelBox"].object(metav1.ObjectMeta{Namespace: named.Namespace, Name: "box"})
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		other := united(metav1.ObjectMeta{Namespace: named.Namespace, Name: "box"}, "other", 8)
		Expect(env.Client.Create(ctx, other)).To(Succeed())
		Eventually(verdict(ctx, other)).Should(Equal("False Conflict"))
		Expect(other.Status.Conditions[0].Message).To(ContainSubstring(`ModelBox "box" controls`))
		boxed := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: named.Namespace, Name: "box"}}
		Expect(*get(ctx, boxed).Spec.Replicas).To(BeEquivalentTo(1))
	})
})

func united(target metav1.ObjectMeta, name string, replicas int32) *extensionv1.UnitedDeployment {
	return &extensionv1.UnitedDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: target.Namespace, Name: name},
		Spec:       extensionv1.UnitedDeploymentSpec{DeploymentName: target.Name, Replicas: &replicas},
	}
}
