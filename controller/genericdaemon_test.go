// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

var _ = Describe("a Genericdaemon", func() {
	It("follows its label with one DaemonSet, and reports that no node has the label", func() {
		ctx, named := context.Background(), metav1.ObjectMeta{Namespace: newNamespace(), Name: "syslog"}
		daemon := &mydomainv1beta1.Genericdaemon{ObjectMeta: named, Spec: mydomainv1beta1.GenericdaemonSpec{Label: "logs", Image: "syslog:1"}}
		Expect(env.Client.Create(ctx, daemon)).To(Succeed())
		rollOutDaemon(ctx, named)
		Eventually(readiness(ctx, daemon)).Should(Equal("True Ready"))
		Expect(daemon.Status.Installed).To(BeEquivalentTo(2))
		set := get(ctx, &appsv1.DaemonSet{ObjectMeta: named})
		uid := set.UID
		Expect(*set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable).To(Equal(intstr.FromString("10%")))
		selector := func() corev1.NodeSelectorRequirement {
			affinity := get(ctx, set).Spec.Template.Spec.Affinity
			return affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0]
		}
		Expect(selector()).To(Equal(corev1.NodeSelectorRequirement{Key: "logs", Operator: corev1.NodeSelectorOpExists}))

		change(ctx, daemon, func(d *mydomainv1beta1.Genericdaemon) { d.Spec.Label = "tier=edge" })
		Eventually(selector).Should(Equal(corev1.NodeSelectorRequirement{Key: "tier", Operator: corev1.NodeSelectorOpIn, Values: []string{"edge"}}))
		Expect(set.UID).To(Equal(uid))
		set.Status = appsv1.DaemonSetStatus{ObservedGeneration: set.Generation}
		Expect(env.Client.Status().Update(ctx, set)).To(Succeed())
		Eventually(readiness(ctx, daemon)).Should(Equal("False NoMatchingNodes"))
		Eventually(func() string { return eventNote(ctx, daemon, "NoMatchingNodes") }).Should(ContainSubstring(`"tier=edge"`))
		Expect(meta.FindStatusCondition(daemon.Status.Conditions, status.ConditionStalled)).To(BeNil(), "a node may come")

		change(ctx, daemon, func(d *mydomainv1beta1.Genericdaemon) { d.Spec.Label = "" })
		Eventually(func() *corev1.Affinity { return get(ctx, set).Spec.Template.Spec.Affinity }).Should(BeNil())
		change(ctx, set, func(s *appsv1.DaemonSet) { s.Spec.Template.Spec.Containers[0].Image = "evil:1" })
		Eventually(func() string { return get(ctx, set).Spec.Template.Spec.Containers[0].Image }).Should(Equal("syslog:1"))
	})
})
