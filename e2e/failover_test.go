//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// takeovers is how often each of the two ends of a leader is tried.
const takeovers = 3

var _ = Describe("when the leading controller", disturbing, func() {
	// limit is that of the time from the end of the leader until the other one has its lease. After
	// SIGKILL this waits until the lease of 15 s expires: it sees a renewal, and the end of the lease, up
	// to 4.4 s late (2.2 retry periods of 2 s). After SIGTERM it must not have to wait for that, because
	// the lease is released. What a slow machine adds fits into both.
	DescribeTable("ends, the other one takes over, and no child is written twice",
		func(ctx SpecContext, limit time.Duration, again int, end func(context.Context, string)) {
			alone("controller")
			ns := newNamespace(ctx)
			writes := watchChildren(ctx, ns)
			for round := range takeovers {
				Eventually(func() []corev1.Pod { return readyPods(ctx, "modelbox-controller") }).Should(HaveLen(2))
				// Some of these children are written by the one leader, some by the other.
				for i := range 10 {
					create(ctx, ns, fmt.Sprintf("before-%d-%d", round, i))
				}
				old := holder()
				begun := time.Now()
				end(ctx, podOf(old))
				ended := time.Now()
				prefix := fmt.Sprintf("after-%d-", round)
				for i := range 10 {
					create(ctx, ns, fmt.Sprintf("%s%d", prefix, i))
				}
				Eventually(writes.written).WithArguments(prefix).WithTimeout(2*time.Minute).WithPolling(20*time.Millisecond).
					Should(Equal(20), "a Deployment and a Service each")
				all := time.Since(ended)
				Eventually(holder).ShouldNot(Or(Equal(old), BeEmpty()))
				acquired := get(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "modelbox-controller"}}).Spec.AcquireTime
				AddReportEntry(fmt.Sprintf("the command took %s; after it: lease acquired %s, all written %s",
					ended.Sub(begun), acquired.Sub(ended), all), ReportEntryVisibilityAlways)
				Expect(acquired.Sub(ended)).To(BeNumerically("<", limit))
			}
			Eventually(writes.written).WithArguments("").Should(Equal(40 * takeovers))
			changed, unchanged := writes.repeated()
			Expect(changed).To(BeEmpty())
			Expect(len(unchanged)).To(BeNumerically("<=", again*takeovers), "%v", unchanged)
		},
		// For the two children of each of 8 reconciles status does not say yet what was written: an apply,
		// which changes nothing. After SIGTERM the reconciles that are under way finish.
		Entry("by SIGKILL, when the lease has expired", 30*time.Second, 16, kill),
		Entry("by SIGTERM, before it would expire", 12*time.Second, 0, func(_ context.Context, pod string) {
			run(kubectl, "-n", system, "delete", "pod", pod, "--wait=false")
		}),
	)
})

// create creates a ModelBox with no replicas.
func create(ctx context.Context, ns, name string) string {
	GinkgoHelper()
	Expect(admin.Create(ctx, &modelv1.ModelBox{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       modelv1.ModelBoxSpec{Image: nginx, Replicas: new(int32(0)), Ports: []modelv1.Port{{Port: 80}}},
	})).To(Succeed())
	return name
}

func readyPods(ctx context.Context, process string) []corev1.Pod {
	GinkgoHelper()
	var ready []corev1.Pod
	for _, pod := range podsOf(ctx, process) {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				ready = append(ready, pod)
			}
		}
	}
	return ready
}

// watchChildren watches the Deployments and Services of a namespace.
func watchChildren(ctx context.Context, ns string) *childWrites {
	GinkgoHelper()
	w := newChildWrites()
	for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &corev1.ServiceList{}} {
		watcher, err := admin.Watch(ctx, list, client.InNamespace(ns))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(watcher.Stop)
		go w.follow(watcher.ResultChan())
	}
	return w
}

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
