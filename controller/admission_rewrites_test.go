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
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// rewriting creates a MutatingAdmissionPolicy for the Deployments of a namespace, which is in
// effect until the spec ends.
func rewriting(ctx context.Context, namespace, expression string) {
	GinkgoHelper()
	since(36, "MutatingAdmissionPolicies")
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
	probe := foreignDeployment(metav1.ObjectMeta{Namespace: namespace, Name: "probe", Labels: map[string]string{"a": "b"}}).(*appsv1.Deployment)
	probe.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "1"}}
	created := func() string {
		dry := probe.DeepCopy()
		Expect(env.Client.Create(ctx, dry, client.DryRunAll)).To(Succeed())
		main := dry.Spec.Template.Spec.Containers[0]
		return fmt.Sprint(dry.Labels, main.Image, main.Env[0].Value)
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
	BeforeAll(alone)
	ctx := context.Background()
	const mirror = `[JSONPatch{op: "replace", path: "/spec/template/spec/containers/0/image", value: "mirror/" + ` +
		`(object.spec.template.spec.containers[0].image.startsWith("mirror/") ? "again" : object.spec.template.spec.containers[0].image)}]`
	atRest := func(d *driven, box *modelv1.ModelBox, want map[string]int) {
		GinkgoHelper()
		requests, _, err := d.reconcile(ctx, box)
		Expect(err).NotTo(HaveOccurred())
		Expect(requests).To(Equal(want))
		Expect(d.events()).NotTo(ContainElement(ContainSubstring("Repaired")))
	}
	none := map[string]int{}

	It("keeps the value of admission, is not written again, and makes its owner not ready", func() {
		namespace := newNamespace()
		rewriting(ctx, namespace, mirror)
		box := richBox(namespace)
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		d := drive()
		atRest(d, box, map[string]int{"create": 2})
		deployment := &appsv1.Deployment{ObjectMeta: box.ObjectMeta}
		Expect(container(&get(ctx, deployment).Spec.Template.Spec, "box").Image).To(Equal("mirror/nginx:1.7.9"))
		const said = `Deployment spec.template.spec.containers[name="box"].image rewritten by admission`
		Expect(ready(ctx, box).Message).To(ContainSubstring(said))
		atRest(d, box, none)
		By("a new version by another manager's status, with which it would be ready")
		rollOut(ctx, box.ObjectMeta)
		atRest(d, box, none)
		Expect(ready(ctx, box).Status).To(Equal(metav1.ConditionFalse))
		Expect(ready(ctx, box).Reason).To(Equal(status.ReasonRewritten))
		Expect(ready(ctx, box).Message).To(ContainSubstring(said))
		By("a restart")
		atRest(drive(), box, none)
		Expect(ready(ctx, box).Message).To(ContainSubstring(said))

		By("a change, which is one write after the ownership of fields, and reads the child and its owner")
		change(ctx, box, func(box *modelv1.ModelBox) { box.Spec.Image = "nginx:2" })
		atRest(d, box, map[string]int{"get": 2, "patch": 1, "apply": 1})
		Expect(ready(ctx, box).Message).To(ContainSubstring(said))
		atRest(d, box, none)
	})

	It("is repaired where another manager writes, and only there", func() {
		namespace := newNamespace()
		rewriting(ctx, namespace, `[JSONPatch{op: "add", path: "/metadata/labels/policy", value: "on"},
			JSONPatch{op: "replace", path: "/spec/template/spec/containers/0/env/0/value", value: "policy"}]`)
		box := richBox(namespace)
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		d := drive()
		atRest(d, box, map[string]int{"create": 2})
		deployment := &appsv1.Deployment{ObjectMeta: box.ObjectMeta}
		Expect(variable(&get(ctx, deployment).Spec.Template.Spec, "A").Value).To(Equal("policy"))
		deployment.Spec.Template.Spec.NodeSelector["x"] = "y"
		Expect(env.Client.Update(ctx, deployment, client.FieldOwner("other-manager"))).To(Succeed())
		_, _, err := d.reconcile(ctx, box)
		Expect(err).NotTo(HaveOccurred())
		Expect(get(ctx, deployment).Spec.Template.Spec.NodeSelector).To(Equal(map[string]string{"disk": "ssd"}))
		Expect(d.events()).To(ContainElement(And(ContainSubstring("Repaired"), ContainSubstring("nodeSelector"))))
		atRest(d, box, none)
	})

	It("does not differ where the API server rounds a quantity up", func() {
		box := richBox(newNamespace())
		box.Spec.ResourceType = modelv1.ResourceTypeCustom
		box.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100u")}}
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		d := drive()
		atRest(d, box, map[string]int{"create": 2})
		Expect(ready(ctx, box).Message).NotTo(ContainSubstring("admission"))
		atRest(d, box, none)
	})
})
