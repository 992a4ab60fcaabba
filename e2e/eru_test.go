//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
)

var _ = Describe("an Eru", func() {
	It("is created for an annotated Deployment, and restarts it once at its scheduled time", long, func(ctx SpecContext) {
		ns := newNamespace(ctx)
		target := deployment(ctx, ns, "idle", 2, map[string]string{mtsrev1.AnnotationEru: "true"})
		eru := &mtsrev1.Eru{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "idle"}}
		pods := func() []types.UID {
			var uids []types.UID
			for _, pod := range running(ctx, ns, target.Spec.Selector.MatchLabels) {
				uids = append(uids, pod.UID)
			}
			return uids
		}
		Eventually(readyCondition(ctx, eru)).Should(Equal("True Disabled"))
		awaitAvailable(ns, "idle")
		before := pods()

		By("scheduling it for the next minute, and for no other this year")
		slot := time.Now().UTC().Truncate(time.Minute).Add(time.Minute)
		if time.Until(slot) < 5*time.Second {
			slot = slot.Add(time.Minute)
		}
		out := run(kubectl, "-n", ns, "patch", "eru", "idle", "--type=merge", "-p",
			`{"spec":{"enabled":true,"schedule":"`+slot.Format("4 15 2 1")+` *"}}`)
		Expect(out).To(ContainSubstring("Warning: "), "kubectl prints the next scheduled times")
		Expect(get(ctx, eru).Status.History).To(BeEmpty())

		By("waiting for the scheduled time")
		Eventually(func() []mtsrev1.EruHistory { return get(ctx, eru).Status.History }).Should(HaveLen(1))
		entry := eru.Status.History[0]
		Expect(entry.Result).To(Equal(mtsrev1.EruRestarted))
		Expect(entry.Slot.UTC()).To(Equal(slot))
		AddReportEntry("restart after its scheduled time", entry.StartedAt.Sub(slot).String())
		Eventually(func() *metav1.Time { return get(ctx, eru).Status.History[0].CompletedAt }).ShouldNot(BeNil())
		Eventually(pods).Should(HaveLen(2))
		Expect(pods()).NotTo(ContainElements(before))
		for _, uid := range before {
			Expect(pods()).NotTo(ContainElement(uid))
		}

		By("deleting the Deployment: its Eru is deleted too")
		Expect(admin.Delete(ctx, target)).To(Succeed())
		Eventually(func() string { return run(kubectl, "-n", ns, "get", "eru", "-o", "name") }).Should(BeEmpty())
	})
})

// awaitAvailable waits until the rollout of a Deployment is complete.
func awaitAvailable(ns, name string) {
	GinkgoHelper()
	run(kubectl, "-n", ns, "rollout", "status", "deployment", name, "--timeout=120s")
}
