// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

var _ = Describe("an App", func() {
	It("is what was written and no more", func() {
		ctx, named := context.Background(), metav1.ObjectMeta{Namespace: newNamespace(), Name: "nginx-app"}
		app := &appv1.App{ObjectMeta: named, Spec: appv1.AppSpec{
			Image: "nginx:1.16.1", Replicas: new(int32(2)),
			Ports: []modelv1.Port{{Port: 8080, TargetPort: new(intstr.FromInt32(80))}},
			Envs:  []corev1.EnvVar{{Name: "DEMO", Value: "app"}},
		}}
		Expect(env.Client.Create(ctx, app)).To(Succeed())
		rollOut(ctx, named)
		Eventually(verdict(ctx, app)).Should(Equal("True Ready"))
		Expect(app.Status.Address).To(Equal("nginx-app." + named.Namespace + ".svc:8080"))
		Expect(app.Status.Selector).To(Equal("app.kubernetes.io/instance=nginx-app,app.kubernetes.io/name=app"))
		deployment, service := get(ctx, &appsv1.Deployment{ObjectMeta: named}), get(ctx, &corev1.Service{ObjectMeta: named})
		main := deployment.Spec.Template.Spec.Containers[0]
		Expect(main.Name).To(Equal("nginx-app"))
		Expect(main.Resources).To(BeZero())
		Expect(main.ReadinessProbe).To(BeNil())
		Expect(service.Spec.Ports[0].TargetPort).To(Equal(intstr.FromInt32(80)))
		Expect(service.Spec.Type).To(Equal(corev1.ServiceTypeClusterIP))

		change(ctx, app, func(a *appv1.App) { a.Spec.Ports[0].NodePort = 30111 })
		Eventually(func() corev1.ServiceType { return get(ctx, service).Spec.Type }).Should(Equal(corev1.ServiceTypeNodePort))
		change(ctx, app, func(a *appv1.App) { a.Spec.Ports, a.Spec.Envs = nil, nil })
		Eventually(func() error { return env.Client.Get(ctx, client.ObjectKeyFromObject(service), service) }).ShouldNot(Succeed())
		Eventually(func() int { return len(get(ctx, deployment).Spec.Template.Spec.Containers[0].Env) }).Should(BeZero())
	})
})

var _ = Describe("a Genericdaemon", func() {
	It("follows its label with one DaemonSet, and says when no node carries it", func() {
		ctx, named := context.Background(), metav1.ObjectMeta{Namespace: newNamespace(), Name: "syslog"}
		daemon := &mydomainv1beta1.Genericdaemon{ObjectMeta: named, Spec: mydomainv1beta1.GenericdaemonSpec{Label: "logs", Image: "syslog:1"}}
		Expect(env.Client.Create(ctx, daemon)).To(Succeed())
		rollOutDaemon(ctx, named)
		Eventually(verdict(ctx, daemon)).Should(Equal("True Ready"))
		Expect(daemon.Status.Installed).To(BeEquivalentTo(2))
		set := get(ctx, &appsv1.DaemonSet{ObjectMeta: named})
		uid := set.UID
		Expect(*set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable).To(Equal(intstr.FromString("10%")))
		asked := func() corev1.NodeSelectorRequirement {
			affinity := get(ctx, set).Spec.Template.Spec.Affinity
			return affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0]
		}
		Expect(asked()).To(Equal(corev1.NodeSelectorRequirement{Key: "logs", Operator: corev1.NodeSelectorOpExists}))

		change(ctx, daemon, func(d *mydomainv1beta1.Genericdaemon) { d.Spec.Label = "tier=edge" })
		Eventually(asked).Should(Equal(corev1.NodeSelectorRequirement{Key: "tier", Operator: corev1.NodeSelectorOpIn, Values: []string{"edge"}}))
		Expect(set.UID).To(Equal(uid))
		set.Status = appsv1.DaemonSetStatus{ObservedGeneration: set.Generation}
		Expect(env.Client.Status().Update(ctx, set)).To(Succeed())
		Eventually(verdict(ctx, daemon)).Should(Equal("False NoMatchingNodes"))
		Eventually(func() string { return eventNote(ctx, daemon, "NoMatchingNodes") }).Should(ContainSubstring(`"tier=edge"`))
		Expect(meta.FindStatusCondition(daemon.Status.Conditions, status.ConditionStalled)).To(BeNil(), "a node may come")

		change(ctx, daemon, func(d *mydomainv1beta1.Genericdaemon) { d.Spec.Label = "" })
		Eventually(func() *corev1.Affinity { return get(ctx, set).Spec.Template.Spec.Affinity }).Should(BeNil())
		change(ctx, set, func(s *appsv1.DaemonSet) { s.Spec.Template.Spec.Containers[0].Image = "evil:1" })
		Eventually(func() string { return get(ctx, set).Spec.Template.Spec.Containers[0].Image }).Should(Equal("syslog:1"))
	})
})

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
