// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// yearly is a schedule whose last time has passed, and whose next one no test sees.
func yearly(replicas int32) []modelv1.Schedule {
	return []modelv1.Schedule{{Name: "yearly", Schedule: "0 0 29 2 *", TimeZone: "Etc/UTC", Replicas: replicas}}
}

// withSchedules are the kinds that have schedules: the resource, an object, and what it has in common with the others.
var withSchedules = map[string]func(metav1.ObjectMeta) (string, status.Object, *[]modelv1.Schedule, **int32, **modelv1.ScheduleStatus){
	"ModelBox": func(m metav1.ObjectMeta) (string, status.Object, *[]modelv1.Schedule, **int32, **modelv1.ScheduleStatus) {
		o := &modelv1.ModelBox{ObjectMeta: m, Spec: modelv1.ModelBoxSpec{Image: "nginx:1"}}
		return "modelboxes", o, &o.Spec.Schedules, &o.Spec.Replicas, &o.Status.Schedule
	},
	"App": func(m metav1.ObjectMeta) (string, status.Object, *[]modelv1.Schedule, **int32, **modelv1.ScheduleStatus) {
		o := &appv1.App{ObjectMeta: m, Spec: appv1.AppSpec{Image: "nginx:1"}}
		return "apps", o, &o.Spec.Schedules, &o.Spec.Replicas, &o.Status.Schedule
	},
	"UnitedDeployment": func(m metav1.ObjectMeta) (string, status.Object, *[]modelv1.Schedule, **int32, **modelv1.ScheduleStatus) {
		o := &extensionv1.UnitedDeployment{ObjectMeta: m, Spec: extensionv1.UnitedDeploymentSpec{DeploymentName: "web", Replicas: new(int32(7))}}
		return "uniteddeployments", o, &o.Spec.Schedules, &o.Spec.Replicas, &o.Status.Schedule
	},
}

var _ = Describe("scheduled replicas", func() {
	for kind, create := range withSchedules {
		It("are written once, and leave what another client sets: "+kind, func() {
			ctx, namespace := context.Background(), newNamespace()
			resource, obj, schedules, replicas, state := create(metav1.ObjectMeta{Namespace: namespace, Name: "web"})
			*schedules = yearly(3)
			Expect(env.Client.Create(ctx, obj)).To(Succeed())
			settled := func() []any {
				get(ctx, obj)
				if *state == nil || obj.GetGeneration() != observedGeneration(obj) {
					return nil
				}
				return []any{**replicas, (*state).Replicas, (*state).Pending == nil, len((*state).Next)}
			}
			Eventually(settled).Should(Equal([]any{int32(3), int32(3), true, 3}))
			Eventually(func() map[string]int {
				count, _ := writes(namespace, 0)
				return count
			}).Should(HaveKeyWithValue("patch "+resource+"/scale 200", 1))
			Eventually(func() string { return eventNote(ctx, obj, "Scaled") }).Should(ContainSubstring(`schedule "yearly"`))

			By("kubectl scale")
			scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 5}}
			Expect(env.Client.SubResource("scale").Update(ctx, obj, client.WithSubResourceBody(scale))).To(Succeed())
			Eventually(settled).Should(Equal([]any{int32(5), int32(3), true, 3}))

			By("another number in the schedule")
			change(ctx, obj, func(status.Object) { *schedules = yearly(4) })
			Eventually(settled).Should(Equal([]any{int32(4), int32(4), true, 3}))
			count, _ := writes(namespace, 0)
			Expect(count).To(HaveKeyWithValue("patch "+resource+"/scale 200", 2))

			By("an autoscaler")
			gvk, err := env.Client.GroupVersionKindFor(obj)
			Expect(err).NotTo(HaveOccurred())
			scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "scaler"}}
			scaler.Spec = autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 9, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
				APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: "web",
			}}
			Expect(env.Client.Create(ctx, scaler)).To(Succeed())
			waitUntilCached(ctx, scaler)
			existing(ctx, metav1.ObjectMeta{Namespace: namespace, Name: map[bool]string{true: "web", false: "other"}[kind == "UnitedDeployment"]})
			change(ctx, obj, func(status.Object) { *schedules = yearly(6) })
			Eventually(readiness(ctx, obj)).Should(Equal("False Conflict"))
			Expect(**replicas).To(BeEquivalentTo(4))

			By("no schedules")
			change(ctx, obj, func(status.Object) { *schedules = nil })
			Eventually(func() *modelv1.ScheduleStatus { get(ctx, obj); return *state }).Should(BeNil())
		})
	}

	// What the operator itself has stored can be created again, as a restore does.
	DescribeTable("do not keep an object from being created with a number", func(kind string) {
		ctx := context.Background()
		_, obj, schedules, replicas, _ := withSchedules[kind](metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"})
		*schedules, *replicas = yearly(3), new(int32(2))
		Expect(env.Client.Create(ctx, obj)).To(Succeed())
	}, Entry("ModelBox", "ModelBox"), Entry("App", "App"))
})

// observedGeneration returns status.observedGeneration.
func observedGeneration(obj status.Object) int64 {
	switch st := obj.GetStatus().(type) {
	case *modelv1.ModelBoxStatus:
		return st.ObservedGeneration
	case *appv1.AppStatus:
		return st.ObservedGeneration
	case *extensionv1.UnitedDeploymentStatus:
		return st.ObservedGeneration
	}
	return 0
}
