// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// returning is an App with onFailedRollout: Return whose first rollout, of the image good:1, is
// complete.
type returning struct {
	*drivenApp
	fake *clocktesting.FakePassiveClock
	// died is whether the process has died, which may leave the record of an earlier rollout.
	died bool
}

func newReturning(ctx context.Context, more func(*appv1.App)) *returning {
	GinkgoHelper()
	named := metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}
	h := &returning{&drivenApp{drive(), ctx, &appv1.App{ObjectMeta: named, Spec: appv1.AppSpec{
		Image: "good:1", Ports: []modelv1.Port{{Port: 80}}, Children: modelv1.Children{OnFailedRollout: modelv1.OnFailedRolloutReturn},
	}}, &appsv1.Deployment{ObjectMeta: named}}, clocktesting.NewFakePassiveClock(time.Now()), false}
	h.clock = h.fake
	more(h.app)
	Expect(env.Client.Create(ctx, h.app)).To(Succeed())
	h.after(4 * time.Second)
	h.complete()
	return h
}

// after reconciles after some time, and returns after which one the object is to be reconciled again.
func (h *returning) after(d time.Duration) time.Duration {
	GinkgoHelper()
	h.fake.SetTime(h.fake.Now().Add(d))
	_, result, err := h.reconcile(h.ctx, h.app)
	Expect(err).NotTo(HaveOccurred())
	return result.RequeueAfter
}

// complete completes the rollout of what the Deployment has, and expects a ready object with one
// record that sends no requests.
func (h *returning) complete() {
	GinkgoHelper()
	rollOut(h.ctx, h.deployment.ObjectMeta)
	h.after(0)
	if h.app.Spec.RestartOnChange == "" {
		h.settled(h.ctx, h.app)
	}
	Expect(readiness(h.ctx, h.app)()).To(Equal("True Ready"))
	Expect(h.image()).To(Equal(get(h.ctx, h.app).Spec.Image))
	if h.app.Spec.OnFailedRollout == "" {
		Expect(h.records()).To(BeEmpty())
		return
	}
	Expect(h.records()).To(HaveLen(1))
	Expect(h.app.Status.Rollout.Failed).To(BeEmpty())
}

// exceed makes the Deployment exceed its progress deadline.
func (h *returning) exceed() {
	GinkgoHelper()
	writeDeploymentStatus(h.ctx, h.deployment.ObjectMeta, false, func(d *appsv1.Deployment) {
		d.Status.UpdatedReplicas, d.Status.UnavailableReplicas = 1, 1
		d.Status.Replicas++
		d.Status.Conditions[1].Status, d.Status.Conditions[1].Reason = corev1.ConditionFalse, status.ReasonProgressDeadline
		d.Status.Conditions[1].Message = `ReplicaSet "web-1" has timed out progressing.`
	})
}

// fail makes the rollout of the spec fail, and expects the one before.
func (h *returning) fail(image string) {
	GinkgoHelper()
	h.after(0)
	Expect(h.image()).To(Equal(get(h.ctx, h.app).Spec.Image))
	h.exceed()
	h.after(0)
	h.after(10 * time.Minute)
	h.after(0)
	Expect(h.image()).To(Equal(image))
	h.returned()
}

// returned expects an object at rest that has returned, whose pods are available.
func (h *returning) returned() {
	GinkgoHelper()
	rollOut(h.ctx, h.deployment.ObjectMeta)
	h.after(0)
	Expect(readiness(h.ctx, h.app)()).To(Equal("False RolledBack"))
	Expect(message(h.ctx, h.app)()).To(MatchRegexp(`^. of . pods are available; the rollout of this spec has failed \(.+\), so the last complete one serves until spec is changed$`))
	Expect(h.app.Status.Conditions).To(ContainElement(And(HaveField("Type", "Available"), HaveField("Status", metav1.ConditionTrue))))
	before := h.app.ResourceVersion
	h.write = func(func() error) error { return fmt.Errorf("a write at rest") }
	for range 2 {
		h.after(time.Hour)
	}
	h.write = nil
	Expect(get(h.ctx, h.app).ResourceVersion).To(Equal(before))
	if !h.died {
		Expect(h.records()).To(HaveLen(1))
	}
}

var _ = Describe("onFailedRollout", Ordered, ContinueOnFailure, func() {
	BeforeAll(alone)

	It("returns once for a spec, to all that the last complete rollout was made of", func(ctx SpecContext) {
		h := newReturning(ctx, asItIs)
		before := get(ctx, h.deployment).Spec.DeepCopy()
		service := &corev1.Service{ObjectMeta: h.deployment.ObjectMeta}
		ports := get(ctx, service).Spec.Ports
		h.edit(func(a *appv1.App) {
			a.Spec.Image, a.Spec.Replicas, a.Spec.Ports[0].Port = "bad:1", new(int32(3)), 8080
			a.Spec.Envs = []corev1.EnvVar{{Name: "A", Value: "b"}}
		})
		h.after(0)
		Expect(get(ctx, service).Spec.Ports).NotTo(Equal(ports))
		h.events()
		h.fail("good:1")
		before.Replicas = new(int32(3))
		Expect(h.deployment.Spec).To(Equal(*before), "so that pods of the old ReplicaSet are not replaced")
		Expect(get(ctx, service).Spec.Ports).To(Equal(ports))
		Expect(h.app.Spec.Image).To(Equal("bad:1"))
		Expect(strings.Join(h.events(), "\n")).To(ContainSubstring("Warning RolledBack the rollout of this spec has failed (ReplicaSet \"web-1\" has timed out progressing.)"))

		By("scaling, another client, and the end of the process")
		h.edit(func(a *appv1.App) { a.Spec.Replicas = new(int32(4)) })
		h.after(0)
		change(ctx, h.deployment, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "foreign:1" })
		h.again(ctx, h.app)
		Expect(h.image()).To(Equal("good:1"))
		Expect(h.deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(4)))
		h.returned()

		By("the next changes of the spec")
		h.edit(ofImage("bad:2"))
		h.fail("good:1")
		h.edit(ofImage("good:2"))
		h.after(0)
		h.complete()
		h.edit(ofImage("bad:1"))
		h.fail("good:2")

		By("taking the change back")
		h.edit(ofImage("good:2"))
		h.after(0)
		h.complete()
	})

	It("does not return before the deadline of this rollout, nor from one that was complete, nor without one", func(ctx SpecContext) {
		h := newReturning(ctx, asItIs)
		h.edit(ofImage("bad:1"))
		h.after(0)
		h.exceed() // The condition of another rollout, which Kubernetes keeps until the present one progresses.
		Expect(h.after(time.Minute)).To(And(BeNumerically(">", time.Second), BeNumerically("<=", 9*time.Minute)))
		Expect(h.image()).To(Equal("bad:1"))
		rollOut(ctx, h.deployment.ObjectMeta)
		h.complete()

		By("crashing later")
		writeDeploymentStatus(ctx, h.deployment.ObjectMeta, false, func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 })
		podOf(ctx, h.deployment.ObjectMeta, "web", waits("CrashLoopBackOff", ""))
		for range 5 {
			h.after(time.Minute)
		}
		Expect(get(ctx, h.app).Status.Problems).To(HaveLen(1))
		Expect(h.image()).To(Equal("bad:1"))

		By("crashing after it was complete, which no controller has seen")
		h.edit(ofImage("bad:2"))
		h.after(0)
		writeDeploymentStatus(ctx, h.deployment.ObjectMeta, false, func(d *appsv1.Deployment) {
			d.Status.AvailableReplicas, d.Status.Conditions[1].LastUpdateTime = 0, metav1.NewTime(h.fake.Now())
		})
		for range 5 {
			h.after(time.Minute)
		}
		Expect(get(ctx, h.app).Status.Problems).To(HaveLen(1))
		Expect(h.image()).To(Equal("bad:2"))

		By("becoming complete after it was given up, before anything was returned")
		h.edit(ofImage("bad:4"))
		h.after(0)
		h.exceed()
		h.after(0)
		h.after(10 * time.Minute)
		Expect(get(ctx, h.app).Status.Rollout.Failed).NotTo(BeEmpty())
		h.complete()
		Expect(h.image()).To(Equal("bad:4"))

		By("without a pod, of which nothing is known")
		h.edit(func(a *appv1.App) { a.Spec.Image, a.Spec.Replicas = "bad:3", new(int32(0)) })
		h.after(0)
		rollOut(ctx, h.deployment.ObjectMeta)
		recorded := h.app.Status.Rollout.Complete
		h.after(0)
		Expect(get(ctx, h.app).Status.Rollout.Complete).To(Equal(recorded))

		By("a record that is deleted before the rollout fails")
		h = newReturning(ctx, asItIs)
		Expect(env.Client.Delete(ctx, &h.records()[0])).To(Succeed())
		h.edit(ofImage("bad:1"))
		h.after(0)
		h.exceed()
		for range 3 {
			h.after(time.Hour)
		}
		Expect(h.image()).To(Equal("bad:1"))
		Expect(readiness(ctx, h.app)()).To(Equal("False ProgressDeadlineExceeded"))

		By("a first rollout")
		first := newReturning(ctx, func(a *appv1.App) { a.Spec.OnFailedRollout = "" }) // So the first one with the field fails.
		Expect(first.app.Status.Rollout).To(BeNil())
		first.edit(func(a *appv1.App) { a.Spec.Image, a.Spec.OnFailedRollout = "bad:1", modelv1.OnFailedRolloutReturn })
		first.after(0)
		first.exceed()
		first.after(time.Hour)
		Expect(first.image()).To(Equal("bad:1"))
		Expect(readiness(ctx, first.app)()).To(Equal("False ProgressDeadlineExceeded"))
	})

	DescribeTable("returns when no pod can start for a reason of the template, and for no other one",
		func(ctx SpecContext, state corev1.ContainerStatus, returns bool) {
			h := newReturning(ctx, asItIs)
			h.edit(ofImage("bad:1"))
			h.after(0)
			writeDeploymentStatus(ctx, h.deployment.ObjectMeta, false, func(d *appsv1.Deployment) {
				d.Status.Replicas, d.Status.UnavailableReplicas = 2, 1
				d.Status.Conditions[1].Reason = "ReplicaSetUpdated"
			})
			podOf(ctx, h.deployment.ObjectMeta, "web", state)
			h.after(0)
			h.after(16 * time.Second)
			Expect(h.image()).To(Equal("bad:1"), "it may be a moment")
			for range 4 {
				h.after(time.Minute)
			}
			if returns {
				Expect(h.image()).To(Equal("good:1"))
			} else {
				Expect(h.image()).To(Equal("bad:1"))
				Expect(get(ctx, h.app).Status.Problems).To(HaveLen(1))
			}
		},
		Entry("a crash", waits("CrashLoopBackOff", "back-off"), true),
		Entry("no name of an image", waits("InvalidImageName", "x"), true),
		Entry("a ConfigMap that does not exist", waits("CreateContainerConfigError", `configmap "a" not found`), true),
		Entry("a registry", badImage, false),
		Entry("a node", waits("ContainerCreating", ""), false),
	)

	It("returns also if Kubernetes keeps the condition of the rollout before, as with Recreate to a ReplicaSet that exists", func(ctx SpecContext) {
		h := newReturning(ctx, func(a *appv1.App) {
			a.Spec.Strategy = &appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		})
		h.fake.SetTime(h.fake.Now().Add(time.Hour))
		h.edit(ofImage("bad:1"))
		h.after(0)
		writeDeploymentStatus(ctx, h.deployment.ObjectMeta, false, func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 })
		podOf(ctx, h.deployment.ObjectMeta, "web", waits("CrashLoopBackOff", "back-off"))
		for range 3 {
			h.after(time.Minute)
		}
		Expect(h.image()).To(Equal("good:1"))
		h.returned()
	})

	It("returns with the model", func(ctx SpecContext) {
		named := metav1.ObjectMeta{Namespace: newNamespace(), Name: "box"}
		box := &modelv1.ModelBox{ObjectMeta: named, Spec: modelv1.ModelBoxSpec{
			Image: "nginx:1", Model: &modelv1.Model{URI: "https://example.com/m.gguf"}, Children: modelv1.Children{OnFailedRollout: modelv1.OnFailedRolloutReturn},
		}}
		deployment, d, clk := &appsv1.Deployment{ObjectMeta: named}, drive(), clocktesting.NewFakePassiveClock(time.Now())
		d.clock = clk
		after := func(by time.Duration) {
			GinkgoHelper()
			clk.SetTime(clk.Now().Add(by))
			_, _, err := d.reconcile(ctx, box)
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		after(4 * time.Second)
		rollOut(ctx, named)
		after(0)
		template, fetcher := get(ctx, deployment).Spec.Template, get(ctx, box).Status.Fetcher

		change(ctx, box, func(b *modelv1.ModelBox) {
			b.Spec.Model.URI, b.Spec.Model.SHA256 = "https://example.com/n.gguf", strings.Repeat("0", 64)
		})
		after(0)
		Expect(get(ctx, deployment).Spec.Template).NotTo(Equal(template))
		writeDeploymentStatus(ctx, named, false, func(d *appsv1.Deployment) {
			d.Status.Conditions[1].Reason, d.Status.AvailableReplicas = status.ReasonProgressDeadline, 0
		})
		after(0)
		after(2 * time.Hour)
		other := modelFetcher
		modelFetcher.Image = "registry.example.com/fetch:newer"
		DeferCleanup(func() { modelFetcher = other })
		after(0)
		Expect(get(ctx, deployment).Spec.Template).To(Equal(template), "also with another version of the operator")
		rollOut(ctx, named)
		after(0)
		Expect(readiness(ctx, box)()).To(Equal("False RolledBack"))
		Expect(box.Status.Fetcher.TemplateHash).To(Equal(fetcher.TemplateHash))
	})

	It("waits for no window and no freeze, and writes nothing while it is paused", func(ctx SpecContext) {
		h := newReturning(ctx, func(a *appv1.App) {
			a.Spec.HoldChanges, a.Spec.Windows = modelv1.HoldChangesAll, windowAt(time.Now())
			a.Spec.Windows.Windows[0].Duration.Duration = 10 * time.Minute
		})
		h.edit(ofImage("bad:1"))
		h.after(0)
		Expect(h.image()).To(Equal("bad:1"))
		h.exceed()
		h.edit(func(a *appv1.App) { a.Spec.Paused = true })
		h.after(time.Hour)
		Expect(h.image()).To(Equal("bad:1"))
		h.edit(func(a *appv1.App) { a.Spec.Paused = false })
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.app.Namespace}}
		change(ctx, namespace, func(n *corev1.Namespace) {
			n.Annotations = map[string]string{api.AnnotationFrozen: "x"}
		})
		h.after(0)
		h.after(0)
		Expect(h.image()).To(Equal("good:1"))
		h.returned()
	})

	It("rolls out again without the field, and leaves no record", func(ctx SpecContext) {
		h := newReturning(ctx, asItIs)
		h.edit(ofImage("bad:1"))
		h.fail("good:1")
		h.edit(func(a *appv1.App) { a.Spec.OnFailedRollout = "" })
		h.after(0)
		Expect(h.image()).To(Equal("bad:1"))
		Expect(h.records()).To(BeEmpty())
		Expect(get(ctx, h.app).Status.Rollout).To(BeNil())
	})

	It("holds a rollout of changed configuration that fails", func(ctx SpecContext) {
		h := newReturning(ctx, func(a *appv1.App) {
			*a = *configured(a.ObjectMeta, "a")
			a.Spec.Image, a.Spec.OnFailedRollout = "good:1", modelv1.OnFailedRolloutReturn
			Expect(env.Client.Create(ctx, configMap(a.Namespace, "a", "1"))).To(Succeed())
		})
		before := linesOf(ctx, h.deployment.ObjectMeta)()
		change(ctx, configMap(h.app.Namespace, "a", ""), setValue("2"))
		h.after(time.Minute)
		Expect(linesOf(ctx, h.deployment.ObjectMeta)()).NotTo(Equal(before))
		h.exceed()
		h.after(time.Hour)
		h.after(time.Minute)
		Expect(readiness(ctx, h.app)()).To(Equal("False ProgressDeadlineExceeded"))
		Expect(linesOf(ctx, h.deployment.ObjectMeta)()).NotTo(Equal(before))
	})

	It("is not ready while the API server refuses the record", func(ctx SpecContext) {
		h := newReturning(ctx, asItIs)
		counted := corev1.ResourceList{"count/controllerrevisions.apps": resource.MustParse("1")}
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: h.app.Namespace, Name: "records"}, Spec: corev1.ResourceQuotaSpec{Hard: counted}}
		Expect(env.Client.Create(ctx, quota)).To(Succeed())
		quota.Status = corev1.ResourceQuotaStatus{Hard: counted, Used: counted}
		Expect(env.Client.Status().Update(ctx, quota)).To(Succeed())
		another := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: h.app.Namespace, Name: "another"}, Data: runtime.RawExtension{Raw: []byte(`{}`)}}
		Eventually(func() error { // The API server learns of a quota a moment later.
			return env.Client.Create(ctx, another.DeepCopy(), client.DryRunAll)
		}).Should(MatchError(ContainSubstring("exceeded quota: records")))
		h.edit(ofImage("good:2"))
		h.after(0)
		rollOut(ctx, h.deployment.ObjectMeta)
		_, _, _ = h.reconcile(ctx, h.app)
		Expect(readiness(ctx, h.app)()).To(Equal("False ChildRefused"))
		Expect(message(ctx, h.app)()).To(MatchRegexp(`^creating ControllerRevision "web-[0-9a-f]{16}": .*exceeded quota: records`))
		Expect(env.Client.Delete(ctx, quota)).To(Succeed())
		Eventually(func() string { // The API server still has the quota for a moment.
			h.fake.SetTime(h.fake.Now().Add(time.Minute))
			_, _, _ = h.reconcile(ctx, h.app)
			return readiness(ctx, h.app)()
		}).Should(Equal("True Ready"))
		h.complete()
	})

	It("uses no record that others have written, and leaves the children as they are without one", func(ctx SpecContext) {
		h := newReturning(ctx, asItIs)
		h.edit(ofImage("bad:1"))
		h.fail("good:1")
		record := h.records()[0]
		forged := record.DeepCopy()
		forged.ResourceVersion, forged.UID = "", ""
		forged.Data = runtime.RawExtension{Raw: []byte(`{"image":"forged:1"}`)}
		for range 2 { // With a forged one, and with none.
			Expect(env.Client.Delete(ctx, &h.records()[0])).To(Succeed())
			if forged != nil {
				Expect(env.Client.Create(ctx, forged)).To(Succeed())
				forged = nil
			}
			h.after(0)
			Expect(h.image()).To(Equal("good:1"))
			Expect(readiness(ctx, h.app)()).To(Equal("False RolledBack"))
			Expect(message(ctx, h.app)()).To(HavePrefix("the record of the last complete rollout is gone, so the children stay as they are; the rollout of this spec has failed"))
		}
		h.edit(ofImage("good:2"))
		h.after(0)
		h.complete()
	})

	It("does so whatever the process dies at", func(ctx SpecContext) {
		for n := 1; n <= 9; n++ {
			for _, after := range []bool{false, true} {
				By(fmt.Sprintf("write %d, after it: %t", n, after))
				h := newReturning(ctx, asItIs)
				h.died = true
				dying := &crashingClient{diesAt: n, after: after}
				reconcile := func() {
					h.write = dying.write
					_, _, _ = h.reconcile(ctx, h.app)
					h.write = nil
					h.again(ctx, h.app)
				}
				h.edit(ofImage("good:2"))
				reconcile() // 2 writes: the Deployment and status.
				rollOut(ctx, h.deployment.ObjectMeta)
				reconcile() // 4: a record, status, the record before, and status.
				h.edit(ofImage("bad:1"))
				reconcile()
				h.exceed()
				h.fake.SetTime(h.fake.Now().Add(time.Hour))
				reconcile() // 2: status, the Deployment, and status.
				h.again(ctx, h.app)
				Expect(dying.writes).To(BeNumerically(">=", n))
				Expect(h.image()).To(Equal("good:2"))
				h.returned()
			}
		}
	})
})
