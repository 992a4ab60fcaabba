// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

var _ = Describe("a ModelBox", func() {
	var (
		ctx        context.Context
		box        *modelv1.ModelBox
		deployment *appsv1.Deployment
		service    *corev1.Service
	)
	BeforeEach(func() {
		ctx = context.Background()
		named := metav1.ObjectMeta{Namespace: newNamespace(), Name: "box"}
		deployment, service = &appsv1.Deployment{ObjectMeta: named}, &corev1.Service{ObjectMeta: named}
		box = &modelv1.ModelBox{ObjectMeta: named, Spec: modelv1.ModelBoxSpec{
			Image:    "nginx:1.7.9",
			Replicas: new(int32(2)),
			Ports:    []modelv1.Port{{Port: 80}},
		}}
	})
	ready := func() {
		GinkgoHelper()
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		rollOut(ctx, box.ObjectMeta)
		Eventually(readiness(ctx, box)).Should(Equal("True Ready"))
	}

	It("becomes a Deployment and a Service by three writes and no read", func() {
		_, mark := writes(box.Namespace, 0)
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		Eventually(readiness(ctx, box)).Should(Equal("False Progressing"))
		Expect(box.Status.Address).To(Equal("box." + box.Namespace + ".svc:80"))
		Expect(meta.IsStatusConditionTrue(box.Status.Conditions, status.ConditionReconciling)).To(BeTrue())
		requests := func(statusWrites int) {
			GinkgoHelper()
			Eventually(func() string {
				count, _ := writes(box.Namespace, mark)
				return describe(count)
			}).Should(And(
				ContainSubstring("1 x create deployments 201"),
				ContainSubstring("1 x create services 201"),
				ContainSubstring("%d x patch modelboxes/status 200", statusWrites),
				Not(MatchRegexp("get|list|update|, .*, .*, ")),
			))
		}
		requests(1)

		// The reconcile that writes Ready comes after all that the creation causes.
		rollOut(ctx, box.ObjectMeta)
		Eventually(readiness(ctx, box)).Should(Equal("True Ready"))
		requests(2)
		Expect(box.Status.AvailableReplicas).To(BeEquivalentTo(2))
		Expect(box.Status.Selector).To(Equal("app.kubernetes.io/instance=box,app.kubernetes.io/name=modelbox"))
		Expect(box.Status.Conditions).To(HaveLen(2), "nothing but Ready and Available once all is there")
	})

	It("has a status that can be written, whatever time a condition of its Deployment has", func() {
		ready()
		for _, instant := range []string{"9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00Z", "1600-01-01T00:00:00+14:00"} {
			patch := fmt.Appendf(nil, `{"status":{"availableReplicas":1,"unavailableReplicas":1,"conditions":[{"type":"Available","status":"False",`+
				`"reason":"MinimumReplicasUnavailable","message":%q,"lastTransitionTime":%[1]q,"lastUpdateTime":%[1]q}]}}`, instant)
			Expect(env.Client.Status().Patch(ctx, get(ctx, deployment), client.RawPatch(types.MergePatchType, patch))).To(Succeed())
			Eventually(func() string {
				available := meta.FindStatusCondition(get(ctx, box).Status.Conditions, status.ConditionAvailable)
				return available.Message
			}).Should(ContainSubstring(instant))
			Expect(box.Status.AvailableReplicas).To(BeEquivalentTo(1))
		}
	})

	It("loses in its Deployment the fields that it loses, and only those", func() {
		box.Spec.Envs = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}}
		box.Spec.DefaultProbes = modelv1.DefaultProbesDisabled // Otherwise a default replaces the probe that is removed.
		box.Spec.StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}}
		box.Spec.PodTemplate = &runtime.RawExtension{Raw: []byte(`{"spec":{"terminationGracePeriodSeconds":7,"nodeSelector":{"disk":"ssd"}}}`)}
		ready()
		By("an annotation and a sidecar of another client")
		change(ctx, deployment, func(d *appsv1.Deployment) {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, "mesh", "on")
			d.Spec.Template.Spec.Containers = append([]corev1.Container{{Name: "mesh", Image: "mesh:1"}}, d.Spec.Template.Spec.Containers...)
		})
		for round, step := range []func(*modelv1.ModelBox){
			func(b *modelv1.ModelBox) {
				b.Spec.Envs, b.Spec.StartupProbe = b.Spec.Envs[:1], nil
				b.Spec.PodTemplate = &runtime.RawExtension{Raw: []byte(`{"spec":{"nodeSelector":{"disk":"ssd"}}}`)}
			},
			func(b *modelv1.ModelBox) { b.Spec.Envs, b.Spec.PodTemplate = nil, nil },
		} {
			By(fmt.Sprintf("change %d", round+1))
			change(ctx, box, step)
			Eventually(readiness(ctx, box)).Should(Equal("False Progressing"))
			spec := get(ctx, deployment).Spec.Template.Spec
			Expect(spec.Containers).To(HaveLen(2))
			Expect(deployment.Annotations).To(HaveKeyWithValue("mesh", "on"))
			main := spec.Containers[0]
			if main.Name == "mesh" {
				main = spec.Containers[1]
			}
			Expect(main.Env).To(HaveLen(1 - round))
			Expect(main.StartupProbe).To(BeNil())
			Expect(*spec.TerminationGracePeriodSeconds).To(BeEquivalentTo(30), "the server's default is back")
			Expect(spec.NodeSelector).To(HaveLen(1 - round))
		}
	})

	It("keeps nodePort and clusterIP through edits, and loses its Service with its ports", func() {
		box.Spec.ServiceType = corev1.ServiceTypeNodePort
		ready()
		was := get(ctx, service).DeepCopy()
		Expect(was.Spec.Ports[0].NodePort).NotTo(BeZero())
		change(ctx, box, func(b *modelv1.ModelBox) {
			b.Spec.Ports = append(b.Spec.Ports, modelv1.Port{Name: "more", Port: 81})
			b.Spec.Ports[0].Name = "first"
		})
		Eventually(func() int { return len(get(ctx, service).Spec.Ports) }).Should(Equal(2))
		Expect(service.Spec.ClusterIP).To(Equal(was.Spec.ClusterIP))
		Expect(service.Spec.Ports[0].NodePort).To(Equal(was.Spec.Ports[0].NodePort))

		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Ports = b.Spec.Ports[:1] })
		Eventually(func() int { return len(get(ctx, service).Spec.Ports) }).Should(Equal(1))
		Expect(service.Spec.Ports[0].NodePort).To(Equal(was.Spec.Ports[0].NodePort))

		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.ServiceType = corev1.ServiceTypeClusterIP })
		Eventually(func() corev1.ServiceType { return get(ctx, service).Spec.Type }).Should(Equal(corev1.ServiceTypeClusterIP))
		Expect(service.Spec.ClusterIP).To(Equal(was.Spec.ClusterIP))

		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Ports = nil })
		Eventually(func() error { return env.Client.Get(ctx, client.ObjectKeyFromObject(service), service) }).
			Should(Satisfy(apierrors.IsNotFound))
		Eventually(func() string { return get(ctx, box).Status.Address }).Should(BeEmpty())
	})

	It("repairs what is ours and leaves alone what is not", func() {
		ready()
		By("a field of ours, changed by another field manager")
		change(ctx, deployment, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil:1" })
		Eventually(func() string { return get(ctx, deployment).Spec.Template.Spec.Containers[0].Image }).Should(Equal("nginx:1.7.9"))
		Eventually(func() string { return eventNote(ctx, box, "Repaired") }).Should(ContainSubstring(".image"))
		By("our label, removed")
		change(ctx, service, func(s *corev1.Service) { s.Labels = nil })
		Eventually(func() int { return len(get(ctx, service).Labels) }).Should(Equal(3))
		By("the children, deleted")
		uid := get(ctx, deployment).UID
		Expect(env.Client.Delete(ctx, deployment)).To(Succeed())
		Expect(env.Client.Delete(ctx, service)).To(Succeed())
		Eventually(func() bool {
			return env.Client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment) == nil && deployment.UID != uid
		}).Should(BeTrue())
		Eventually(func() error { return env.Client.Get(ctx, client.ObjectKeyFromObject(service), service) }).Should(Succeed())
		By("annotations and labels of another field manager")
		change(ctx, deployment, func(d *appsv1.Deployment) {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, "x", "y")
			d.Labels["x"] = "y"
		})
		// The status of the ModelBox proves that the Deployment was reconciled since.
		deployment.Status.ObservedGeneration, deployment.Status.Replicas = deployment.Generation, 7
		Expect(env.Client.Status().Update(ctx, deployment)).To(Succeed())
		version := deployment.ResourceVersion
		Eventually(func() int32 { return get(ctx, box).Status.Replicas }).Should(BeEquivalentTo(7))
		Expect(get(ctx, deployment).ResourceVersion).To(Equal(version))
	})

	It("writes nothing while paused, says so, and catches up", func() {
		ready()
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Paused, b.Spec.Replicas = true, new(int32(9)) })
		Eventually(readiness(ctx, box)).Should(Equal("False Paused"))
		Expect(meta.IsStatusConditionTrue(box.Status.Conditions, status.ConditionPaused)).To(BeTrue())
		Expect(*get(ctx, deployment).Spec.Replicas).To(BeEquivalentTo(2))
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Replicas = new(int32(2)) })
		Eventually(readiness(ctx, box)).Should(Equal("True Ready"), "nothing waits any more")
		Expect(meta.IsStatusConditionTrue(box.Status.Conditions, status.ConditionPaused)).To(BeTrue())
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Paused, b.Spec.Replicas = false, new(int32(9)) })
		Eventually(func() int32 { return *get(ctx, deployment).Spec.Replicas }).Should(BeEquivalentTo(9))
		Eventually(readiness(ctx, box)).Should(Equal("False Progressing"))
		Expect(meta.FindStatusCondition(box.Status.Conditions, status.ConditionPaused)).To(BeNil())
	})

	It("says in the API server's own words why a child was refused, and heals", func() {
		box.Spec.ServiceType = corev1.ServiceTypeNodePort
		box.Spec.Ports[0].NodePort = 99
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		Eventually(readiness(ctx, box)).Should(Equal("False ChildRefused"))
		Expect(box.Status.Conditions[0].Message).To(ContainSubstring("provided port is not in the valid range"))
		Expect(meta.IsStatusConditionTrue(box.Status.Conditions, status.ConditionStalled)).To(BeTrue())
		Eventually(func() string { return eventNote(ctx, box, "ChildRefused") }).Should(ContainSubstring("valid range"))
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Ports[0].NodePort = 0 })
		Eventually(readiness(ctx, box)).Should(Equal("False Progressing"))
		Expect(meta.FindStatusCondition(box.Status.Conditions, status.ConditionStalled)).To(BeNil())
	})

	It("says why an object that slipped past admission cannot work, and leaves what runs", func() {
		ready()
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Image = "BAD image" })
		Eventually(readiness(ctx, box)).Should(Equal("False InvalidSpec"))
		Expect(box.Status.Conditions[0].Message).To(ContainSubstring("spec.image"))
		Expect(get(ctx, deployment).Spec.Template.Spec.Containers[0].Image).To(Equal("nginx:1.7.9"))
	})

	It("says so when a rollout cannot go on", func() {
		ready()
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Image = "nginx:2" })
		Eventually(readiness(ctx, box)).Should(Equal("False Progressing"))
		get(ctx, deployment)
		deployment.Status.ObservedGeneration = deployment.Generation
		deployment.Status.Conditions = []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "exceeded quota: gpu",
		}}
		Expect(env.Client.Status().Update(ctx, deployment)).To(Succeed())
		Eventually(readiness(ctx, box)).Should(Equal("False ReplicaFailure"))
		Expect(box.Status.Conditions[0].Message).To(Equal("exceeded quota: gpu"))
	})

	It("is scaled by /scale, and never below 0", func() {
		ready()
		scale := func(replicas int) error {
			named := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: box.Namespace, Name: box.Name}}
			body := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
			return env.Client.SubResource("scale").Patch(ctx, named, client.RawPatch(types.MergePatchType, body))
		}
		Expect(scale(3)).To(Succeed())
		Eventually(func() int32 { return *get(ctx, deployment).Spec.Replicas }).Should(BeEquivalentTo(3))
		Expect(scale(-1)).To(MatchError(ContainSubstring("greater than or equal to 0")))
	})
})
