//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

var _ = Describe("without any webhook pod", Serial, func() {
	It("everything else continues, errors name the webhook, and admission works again when the pods are back", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		box := &modelv1.ModelBox{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "here"},
			Spec:       modelv1.ModelBoxSpec{Image: nginx, ResourceType: modelv1.ResourceTypeCustom, Resources: &corev1.ResourceRequirements{}},
		}
		deleted := box.DeepCopy()
		deleted.Name = "deleted"
		for _, b := range []*modelv1.ModelBox{box, deleted} {
			Expect(admin.Create(ctx, b)).To(Succeed())
			awaitReady(ns, "modelbox/"+b.Name)
		}

		By("stopping all webhook pods")
		DeferCleanup(func() {
			scaleWebhook(2)
			awaitOperator()
		})
		scaleWebhook(0)
		// Without a grace period: a graceful end takes up to two minutes.
		run(kubectl, "-n", system, "delete", "pods", "-l", "app.kubernetes.io/name=modelbox-webhook", "--force", "--grace-period=0")
		Eventually(func() []corev1.Pod {
			pods := &corev1.PodList{}
			Expect(admin.List(ctx, pods, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/name": "modelbox-webhook"})).To(Succeed())
			return pods.Items
		}, 3*time.Minute).Should(BeEmpty())

		By("creating and changing objects of the operator's kinds: refused, with the webhook's name")
		fresh := box.DeepCopy()
		fresh.ObjectMeta = metav1.ObjectMeta{Namespace: ns, Name: "fresh"}
		// The Pod objects are deleted, but the processes may still respond on open
		// connections until they end.
		Eventually(dryRunErrors).WithArguments(ctx).Should(HaveLen(parallelRequests))
		Expect(admin.Create(ctx, fresh)).To(MatchError(ContainSubstring(`failed calling webhook "default.modelbox.model.github.com"`)))
		spec := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":2}}`))
		Expect(admin.Patch(ctx, get(ctx, box), spec)).To(MatchError(ContainSubstring(`failed calling webhook`)))

		By("other workloads and namespaces, and metadata and deletion of the operator's kinds: not affected")
		deployment(ctx, ns, "other", 1, nil)
		awaitAvailable(ns, "other")
		other := newNamespace(ctx)
		run(kubectl, "delete", "namespace", other, "--timeout=60s")
		run(kubectl, "-n", ns, "label", "modelbox/here", "still=works")
		run(kubectl, "-n", ns, "delete", "modelbox/deleted", "--timeout=30s")

		By("the controller: still reconciles and writes status")
		run(kubectl, "-n", ns, "scale", "modelbox/here", "--replicas=2")
		Eventually(func() int32 { return get(ctx, box).Status.AvailableReplicas }).Should(Equal(int32(2)))
		before := get(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "here"}})
		Expect(admin.Delete(ctx, before.DeepCopy())).To(Succeed())
		Eventually(func() (types.UID, error) {
			now := &appsv1.Deployment{}
			err := admin.Get(ctx, client.ObjectKeyFromObject(before), now)
			return now.UID, err
		}).ShouldNot(Or(BeEmpty(), Equal(before.UID)))
		awaitReady(ns, "modelbox/here")

		By("starting the webhook again")
		scaleWebhook(2)
		run(kubectl, "-n", system, "rollout", "status", "deployment", "modelbox-webhook", "--timeout=120s")
		back := time.Now()
		fresh.ResourceVersion = ""
		Eventually(func() error { return admin.Create(ctx, fresh) }, 30*time.Second).Should(Succeed())
		AddReportEntry("admitting again after the pods were ready", time.Since(back).String(), ReportEntryVisibilityAlways)
	})
})

func scaleWebhook(replicas int) {
	GinkgoHelper()
	run(kubectl, "-n", system, "scale", "deployment", "modelbox-webhook", fmt.Sprint("--replicas=", replicas))
}
