// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
)

var _ = Describe("an Eru", func() {
	var (
		ctx   context.Context
		named metav1.ObjectMeta
		eru   *mtsrev1.Eru
	)
	BeforeEach(func() {
		ctx, named = context.Background(), metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}
		eru = &mtsrev1.Eru{ObjectMeta: named}
	})
	annotated := func(annotations map[string]string) *appsv1.Deployment {
		d := foreignDeployment(named).(*appsv1.Deployment)
		d.Annotations = annotations
		return d
	}

	It("is created for an annotated Deployment, and never changed afterwards", func() {
		d := annotated(map[string]string{mtsrev1.AnnotationEru: "true", mtsrev1.AnnotationSchedule: "0 3 * * *", mtsrev1.AnnotationTimeZone: "Asia/Shanghai"})
		Expect(env.Client.Create(ctx, d)).To(Succeed())
		Eventually(readiness(ctx, eru)).Should(Equal("True Disabled"))
		Expect(eru.Spec.Schedule).To(Equal("0 3 * * *"))
		Expect(eru.Spec.TimeZone).To(Equal("Asia/Shanghai"))
		Expect(eru.Spec.Enabled).To(BeFalse())
		Expect(eru.Status.Phase).To(Equal(mtsrev1.EruStopped))
		Expect(eru.OwnerReferences).To(ConsistOf(HaveField("UID", d.UID)))

		change(ctx, eru, func(e *mtsrev1.Eru) { e.Spec.Schedule, e.Spec.Enabled = "0 0 1 1 *", true })
		Eventually(readiness(ctx, eru)).Should(HavePrefix("True Scheduled"))
		Expect(eru.Status.NextScheduleTime.IsZero()).To(BeFalse())
		before := eru.DeepCopy()
		change(ctx, d, func(d *appsv1.Deployment) { d.Annotations[mtsrev1.AnnotationSchedule] = "0 5 * * *" })
		// The event of the next Deployment comes later, and its Eru is reconciled.
		next := annotated(map[string]string{mtsrev1.AnnotationEru: "true"})
		next.Name = "next"
		Expect(env.Client.Create(ctx, next)).To(Succeed())
		Eventually(readiness(ctx, &mtsrev1.Eru{ObjectMeta: metav1.ObjectMeta{Namespace: named.Namespace, Name: "next"}})).Should(Equal("True Disabled"))
		Expect(get(ctx, eru)).To(BeComparableTo(before), "an Eru that exists is never rewritten")
	})

	It("computes its next scheduled time again, whatever another client writes into its status", func() {
		eru.Spec = mtsrev1.EruSpec{Enabled: true, Schedule: "0 0 1 1 *"}
		existing(ctx, named)
		Expect(env.Client.Create(ctx, eru)).To(Succeed())
		Eventually(readiness(ctx, eru)).Should(Equal("True Scheduled"))
		next := eru.Status.NextScheduleTime.UTC()
		for _, patch := range []string{
			`{"nextScheduleTime":"9999-12-31T23:59:59Z"}`,
			`{"nextScheduleTime":"9999-12-31T23:59:59Z","history":[{"slot":"0001-01-01T00:00:00Z","result":"Restarted"}]}`,
		} {
			Expect(env.Client.Status().Patch(ctx, eru, client.RawPatch(types.MergePatchType, []byte(`{"status":`+patch+`}`)))).To(Succeed())
			Eventually(func() time.Time { return get(ctx, eru).Status.NextScheduleTime.UTC() }).Should(Equal(next), patch)
			Expect(readiness(ctx, eru)()).To(Equal("True Scheduled"))
		}
	})

	It("means the Deployment of its deprecated field, also where no webhook was called", func() {
		eru.Spec = mtsrev1.EruSpec{Enabled: true, Schedule: "0 0 1 1 *", DeprecatedDeploymentName: "other"}
		Expect(env.Client.Create(ctx, eru)).To(Succeed())
		Eventually(readiness(ctx, eru)).Should(Equal("False TargetNotFound"))
		Expect(eru.Spec.DeploymentName).To(BeEmpty())
		existing(ctx, metav1.ObjectMeta{Namespace: named.Namespace, Name: "other"})
		Eventually(readiness(ctx, eru)).Should(Equal("True Scheduled"))
		Expect(env.Kubectl("", "-n", named.Namespace, "get", "eru", "web")).To(MatchRegexp(`(?m)^web +Running +True +other `))

		By("setting both, which must be the same")
		eru.Spec.DeploymentName = "web"
		Expect(env.Client.Update(ctx, eru)).To(MatchError(And(
			ContainSubstring("spec.deploymentname: Invalid value"), ContainSubstring("must be the same as deploymentName; remove deploymentname"))))
	})
})
