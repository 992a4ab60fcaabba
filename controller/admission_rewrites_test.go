// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// rewriting creates a MutatingAdmissionPolicy for the Deployments of a namespace, which is in
// effect until the spec ends.
func rewriting(ctx context.Context, namespace, expression string) {
	GinkgoHelper()
	inNamespace := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: inNamespace,
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
				}}},
			},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: expression},
			}},
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: policy.ObjectMeta,
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name},
	}
	probe := foreignDeployment(metav1.ObjectMeta{Namespace: namespace, Name: "probe", Annotations: map[string]string{"a": "b"}}).(*appsv1.Deployment)
	probe.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "1"}}
	created := func() string {
		dry := probe.DeepCopy()
		Expect(env.Client.Create(ctx, dry, client.DryRunAll)).To(Succeed())
		main := dry.Spec.Template.Spec.Containers[0]
		return fmt.Sprint(dry.Annotations, main.Image, main.Env[0].Value)
	}
	before := created()
	for _, obj := range []client.Object{policy, binding} {
		Expect(env.Client.Create(ctx, obj)).To(Succeed())
		DeferCleanup(func() { Expect(env.Client.Delete(context.Background(), obj)).To(Succeed()) })
	}
	// A policy takes effect some time after its creation.
	Eventually(created).ShouldNot(Equal(before))
}

var _ = Describe("a child that admission rewrites", Ordered, ContinueOnFailure, func() {
	BeforeAll(func() {
		stop()
		DeferCleanup(start)
	})
	ctx := context.Background()
	const mirror = `[JSONPatch{op: "replace", path: "/spec/template/spec/containers/0/image", value: "mirror/" + ` +
		`(object.spec.template.spec.containers[0].image.startsWith("mirror/") ? "again" : object.spec.template.spec.containers[0].image)}]`

	It("keeps the value of admission, which is reported once and not written again", func() {
		namespace := newNamespace()
		rewriting(ctx, namespace, mirror)
		box := richBox(namespace)
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		d := drive()
		requests, _, err := d.reconcile(ctx, box)
		Expect(err).NotTo(HaveOccurred())
		Expect(requests).To(Equal(map[string]int{"create": 2}))
		deployment := &appsv1.Deployment{ObjectMeta: box.ObjectMeta}
		image := func() string { return container(&get(ctx, deployment).Spec.Template.Spec, "box").Image }
		Expect(image()).To(Equal("mirror/nginx:1.7.9"))
		said := "image rewritten by admission: nginx:1.7.9 -> mirror/nginx:1.7.9"
		Expect(d.events()).To(ConsistOf(And(HavePrefix("Normal Rewritten"), ContainSubstring(said))))
		atRest := func(d *driven, reads map[string]int) {
			GinkgoHelper()
			requests, _, err := d.reconcile(ctx, box)
			Expect(err).NotTo(HaveOccurred())
			Expect(requests).To(Equal(reads))
			Expect(d.events()).To(BeEmpty())
			Expect(ready(ctx, box).Message).To(ContainSubstring(said))
		}
		none := map[string]int{}
		atRest(d, none)
		By("a new version by another manager's status and label")
		get(ctx, deployment)
		deployment.Status.ObservedGeneration = 7
		Expect(env.Client.Status().Update(ctx, deployment)).To(Succeed())
		atRest(d, none)
		By("a restart")
		restarted := drive()
		atRest(restarted, map[string]int{"get": 1})
		atRest(restarted, none)

		By("a change, which is one write")
		for i, image := range []string{"nginx:2", "nginx:3"} {
			change(ctx, box, func(box *modelv1.ModelBox) { box.Spec.Image = image })
			said = fmt.Sprintf("image rewritten by admission: %s -> mirror/%s", image, image)
			requests, _, err := d.reconcile(ctx, box)
			Expect(err).NotTo(HaveOccurred())
			Expect(requests["apply"]).To(Equal(1), fmt.Sprint(requests))
			Expect(requests["patch"]).To(Equal(1-i), "the fields' ownership is moved once")
			Expect(d.events()).To(ConsistOf(ContainSubstring(said)))
			atRest(d, none)
		}
	})

	It("is repaired where another manager writes, and only there", func() {
		namespace := newNamespace()
		rewriting(ctx, namespace, `[JSONPatch{op: "add", path: "/metadata/annotations/policy", value: "on"},
			JSONPatch{op: "replace", path: "/spec/template/spec/containers/0/env/0/value", value: "policy"}]`)
		box := richBox(namespace)
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		d := drive()
		_, _, err := d.reconcile(ctx, box)
		Expect(err).NotTo(HaveOccurred())
		deployment := &appsv1.Deployment{ObjectMeta: box.ObjectMeta}
		Expect(variable(&get(ctx, deployment).Spec.Template.Spec, "A").Value).To(Equal("policy"))
		d.events()
		deployment.Spec.Template.Spec.NodeSelector["x"] = "y"
		Expect(env.Client.Update(ctx, deployment, client.FieldOwner("other-manager"))).To(Succeed())
		_, _, err = d.reconcile(ctx, box)
		Expect(err).NotTo(HaveOccurred())
		Expect(get(ctx, deployment).Spec.Template.Spec.NodeSelector).To(Equal(map[string]string{"disk": "ssd"}))
		Expect(d.events()).To(ContainElement(And(ContainSubstring("Repaired"), ContainSubstring("nodeSelector"))))
		requests, _, err := d.reconcile(ctx, box)
		Expect(err).NotTo(HaveOccurred())
		Expect(requests).To(BeEmpty())
	})

	It("has another image with each request, and is written once", func() {
		namespace := newNamespace()
		rewriting(ctx, namespace, `[JSONPatch{op: "replace", path: "/spec/template/spec/containers/0/image", value: "random/image:" +
			string(size(object.spec.template.spec.containers[0].image)) + "x" +
			(has(object.metadata.resourceVersion) ? object.metadata.resourceVersion : "0")}]`)
		box := richBox(namespace)
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		d, writes := drive(), 0
		deployment := &appsv1.Deployment{ObjectMeta: box.ObjectMeta}
		images := map[string]bool{}
		for i := range 10 {
			requests, _, err := d.reconcile(ctx, box)
			Expect(err).NotTo(HaveOccurred())
			writes += requests["apply"] + requests["create"]
			get(ctx, deployment)
			images[container(&deployment.Spec.Template.Spec, "box").Image] = true
			metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, "i", fmt.Sprint(i)) // The update has another image.
			Expect(env.Client.Update(ctx, deployment, client.FieldOwner("other"))).To(Succeed())
		}
		Expect(len(images)).To(BeNumerically(">", 5), "the policy is in effect")
		Expect(writes).To(Equal(2))
	})

	It("has a quantity that the API server rounded up, and is written once", func() {
		box := richBox(newNamespace())
		box.Spec.ResourceType = modelv1.ResourceTypeCustom
		box.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100u")}}
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		d := drive()
		_, _, err := d.reconcile(ctx, box)
		Expect(err).NotTo(HaveOccurred())
		Expect(ready(ctx, box).Message).To(ContainSubstring("limits.cpu rewritten by admission: 100u -> 1m"))
		requests, _, err := d.reconcile(ctx, box)
		Expect(err).NotTo(HaveOccurred())
		Expect(requests).To(BeEmpty())
	})
})
