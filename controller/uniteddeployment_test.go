// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

	It("waits for its Deployment, sets its replica count by one write, and keeps it on deletion", func() {
		Expect(env.Client.Create(ctx, ud)).To(Succeed())
		Eventually(readiness(ctx, ud)).Should(Equal("False TargetNotFound"))
		existing(ctx, named)
		Eventually(replicas).Should(BeEquivalentTo(2))
		rollOut(ctx, named)
		Eventually(readiness(ctx, ud)).Should(Equal("True Ready"))
		Expect(ud.Status.AvailableReplicas).To(BeEquivalentTo(2))
		Expect(ud.Status.Selector).To(Equal("foreign=true"))

		Eventually(func() string { return eventNote(ctx, ud, "Scaled") }).Should(Equal(`Deployment "web" was scaled from 1 to 2`))
		By("another client scales it")
		_, mark := writes(named.Namespace, 0)
		change(ctx, &appsv1.Deployment{ObjectMeta: named}, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(7)) })
		Eventually(replicas).Should(BeEquivalentTo(2))
		var count map[string]int
		Eventually(func() map[string]int { // The API server writes its audit log after the object.
			count, _ = writes(named.Namespace, mark)
			return count
		}).Should(HaveKeyWithValue("patch deployments/scale 200", 1))
		Expect(count).NotTo(HaveKey(ContainSubstring("deployments 200")))
		Eventually(func() int { return eventCount(ctx, ud, "Scaled") }).Should(Equal(2))

		By("a deletion, and a scale after it")
		Expect(env.Client.Delete(ctx, ud)).To(Succeed())
		Eventually(func() error { return running.GetCache().Get(ctx, client.ObjectKeyFromObject(ud), ud) }).Should(Satisfy(apierrors.IsNotFound))
		_, mark = writes(named.Namespace, 0)
		change(ctx, &appsv1.Deployment{ObjectMeta: named}, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(5)) })
		rollOut(ctx, named)
		Eventually(func() *int32 {
			d := &appsv1.Deployment{}
			Expect(running.GetCache().Get(ctx, client.ObjectKey{Namespace: named.Namespace, Name: named.Name}, d)).To(Succeed())
			return d.Spec.Replicas
		}).Should(HaveValue(BeEquivalentTo(5)), "the next one is not to scale it because the cache is behind")
		// The next one's status proves that the controller has seen the scale.
		next := united(named, "next", 5)
		Expect(env.Client.Create(ctx, next)).To(Succeed())
		Eventually(func() int32 { return get(ctx, next).Status.AvailableReplicas }).Should(BeEquivalentTo(5))
		Eventually(readiness(ctx, next)).Should(Equal("True Ready"))
		count, _ = writes(named.Namespace, mark)
		Expect(describe(count)).NotTo(ContainSubstring("deployments/scale 200"), "a reconcile that began before the deletion may still be refused")
	})

	It("has the whole selector of its Deployment in status, also one that is too long for the cache", func() {
		target := foreignDeployment(named).(*appsv1.Deployment)
		for i := range 20 {
			target.Spec.Selector.MatchLabels[fmt.Sprintf("example.com/a-long-label-%d", i)] = "with-a-long-value"
		}
		Expect(env.Client.Create(ctx, target)).To(Succeed())
		Expect(env.Client.Create(ctx, ud)).To(Succeed())
		Eventually(func() string { return get(ctx, ud).Status.Selector }).Should(Equal(metav1.FormatLabelSelector(target.Spec.Selector)))
		Eventually(replicas).Should(BeEquivalentTo(2))
		rollOut(ctx, named)
		Eventually(readiness(ctx, ud)).Should(Equal("True Ready"))
	})

	It("yields to an older one, and takes over when that goes", func() {
		existing(ctx, named)
		Expect(env.Client.Create(ctx, ud)).To(Succeed())
		Eventually(replicas).Should(BeEquivalentTo(2))
		rollOut(ctx, named)
		Eventually(readiness(ctx, ud)).Should(Equal("True Ready"))
		// Of two of the same second the smaller uid is the older, and uids are random:
		// the second must have passed.
		younger := united(named, "younger", 9)
		Eventually(func() metav1.Time { return metav1.Now() }).Should(Satisfy(func(now metav1.Time) bool {
			return now.Unix() > ud.CreationTimestamp.Unix()
		}))
		Expect(env.Client.Create(ctx, younger)).To(Succeed())
		Eventually(readiness(ctx, younger)).Should(Equal("False Conflict"))
		Expect(younger.Status.Conditions[0].Message).To(ContainSubstring(`"holder" is older`))
		// Each of them is reconciled, which its status proves, and neither scales.
		_, mark := writes(named.Namespace, 0)
		target := get(ctx, &appsv1.Deployment{ObjectMeta: named})
		target.Status.AvailableReplicas = 1
		Expect(env.Client.Status().Update(ctx, target)).To(Succeed())
		for _, obj := range []*extensionv1.UnitedDeployment{ud, younger} {
			Eventually(func() int32 { return get(ctx, obj).Status.AvailableReplicas }).Should(BeEquivalentTo(1))
		}
		count, _ := writes(named.Namespace, mark)
		Expect(describe(count)).NotTo(ContainSubstring("deployments/scale"))
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
		waitUntilCached(ctx, scaler)
		Expect(env.Client.Create(ctx, ud)).To(Succeed())
		Eventually(readiness(ctx, ud)).Should(Equal("False Conflict"))
		Expect(replicas()).To(BeEquivalentTo(1))
		Expect(env.Client.Delete(ctx, scaler)).To(Succeed())
		Eventually(replicas).Should(BeEquivalentTo(2))

		box := guarantees["ModelBox"].object(metav1.ObjectMeta{Namespace: named.Namespace, Name: "box"})
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		other := united(metav1.ObjectMeta{Namespace: named.Namespace, Name: "box"}, "other", 8)
		Expect(env.Client.Create(ctx, other)).To(Succeed())
		Eventually(readiness(ctx, other)).Should(Equal("False Conflict"))
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
