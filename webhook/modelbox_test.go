// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

var _ = Describe("a ModelBox at admission", func() {
	var (
		ctx context.Context
		box *modelv1.ModelBox
	)
	BeforeEach(func() {
		ctx = context.Background()
		box = &modelv1.ModelBox{
			ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(), Name: "box"},
			Spec:       modelv1.ModelBoxSpec{Image: "nginx:1.7.9", Ports: []modelv1.Port{{Port: 80}}},
		}
	})
	kubectl := func(stdin string, args ...string) string {
		GinkgoHelper()
		return kubectlIn(box.Namespace, stdin, args...)
	}

	It("takes the users' manifest unchanged and fills in the rest", func() {
		kubectl(sample("modelbox"), "apply", "-f", "-")
		box.Name = "modelbox-sample"
		Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(box), box)).To(Succeed())
		Expect(box.Spec.ResourceType).To(Equal(modelv1.ResourceTypeSmall))
		Expect(box.Spec.Resources.Requests).To(Equal(box.Spec.Resources.Limits))
		Expect(box.Spec.Resources.Limits.Cpu().Equal(resource.MustParse("1"))).To(BeTrue())
		Expect(box.Spec.Resources.Limits.Memory().Equal(resource.MustParse("2Gi"))).To(BeTrue())
		Expect(box.Spec.ReadinessProbe.TCPSocket.Port).To(Equal(intstr.FromInt32(80)))
		Expect(box.Spec.LivenessProbe.TCPSocket.Port).To(Equal(intstr.FromInt32(80)))
		Expect(box.Spec.ServiceType).To(Equal(corev1.ServiceTypeNodePort))
		Expect(*box.Spec.RollingUpdate).To(Equal(intstr.FromString("30%")))
	})

	It("is refused with all of its errors in one answer, and how to correct them", func() {
		box.Spec = modelv1.ModelBoxSpec{
			Image:        "Not An Image",
			Replicas:     new(int32(-1)),
			ResourceType: modelv1.ResourceTypeSmall,
			Resources:    &corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("3")}},
			ServiceType:  corev1.ServiceTypeClusterIP,
			Ports:        []modelv1.Port{{Port: 80, NodePort: 30080}},
			PodTemplate:  &runtime.RawExtension{Raw: []byte(`{"spec":{"nodeSelektor":{}}}`)},
		}
		err := env.Client.Create(ctx, box)
		var status *apierrors.StatusError
		Expect(errors.As(err, &status)).To(BeTrue(), "%v", err)
		Expect(status.ErrStatus.Code).To(BeEquivalentTo(422))
		Expect(status.ErrStatus.Reason).To(Equal(metav1.StatusReasonInvalid))
		var fields []string
		for _, cause := range status.ErrStatus.Details.Causes {
			fields = append(fields, cause.Field)
		}
		Expect(fields).To(ConsistOf("spec.image", "spec.replicas", "spec.resources", "spec.ports[0].nodePort", "spec.podTemplate.spec.nodeSelektor"))
		Expect(err).To(MatchError(ContainSubstring("set resourceType: custom")))
	})

	It("gets what a new object gets that has only what clients set, whichever they are", func() {
		manifest := func(spec string) string {
			return `{"apiVersion":"model.github.com/v1","kind":"ModelBox","metadata":{"name":"box"},"spec":` + spec + `}`
		}
		stored := func(jsonpath string) func() string {
			return func() string { return kubectl("", "get", "mb/box", "-o", "jsonpath="+jsonpath) }
		}
		merge := func(spec string) { kubectl("", "patch", "mb/box", "--type=merge", "-p", `{"spec":`+spec+`}`) }
		small := `{"limits":{"cpu":"1","memory":"2Gi"},"requests":{"cpu":"1","memory":"2Gi"}}`

		By("an empty probe in a manifest")
		kubectl(manifest(`{"image":"a:1","ports":[{"port":80}],"readinessProbe":{}}`), "apply", "-f", "-")
		kubectl(manifest(`{"image":"a:1","ports":[{"port":81}],"readinessProbe":{}}`), "apply", "-f", "-")
		Expect(stored("{.spec.readinessProbe} {.spec.livenessProbe}")()).To(Equal(`{"tcpSocket":{"port":81}} {"tcpSocket":{"port":81}}`))
		By("a manager of an empty spec")
		kubectl(manifest(`{}`), "apply", "--server-side", "--field-manager=other", "-f", "-")
		merge(`{"resourceType":"medium"}`)
		Expect(stored("{.spec.resources}")()).To(Equal(`{"limits":{"cpu":"2","memory":"4Gi"},"requests":{"cpu":"2","memory":"4Gi"}}`))
		merge(`{"resourceType":null}`)
		Expect(stored("{.spec.resourceType} {.spec.resources}")()).To(Equal("small " + small))
		By("a merge patch of some resources")
		merge(`{"resources":{"limits":{"cpu":"500m","memory":"1Gi"}}}`)
		Expect(stored("{.spec.resourceType} {.spec.resources}")()).To(Equal(`custom {"limits":{"cpu":"500m","memory":"1Gi"}}`))
		merge(`{"resources":null}`)
		Expect(stored("{.spec.resourceType} {.spec.resources}")()).To(Equal("small " + small))
		merge(`{"resources":{"limits":{"nvidia.com/gpu":1}}}`)
		Expect(stored("{.spec.resourceType} {.spec.resources}")()).To(Equal(`custom {"limits":{"nvidia.com/gpu":1}}`))
		By("a device beside a preset")
		merge(`{"resourceType":"medium"}`)
		Expect(stored("{.spec.resources}")()).To(Equal(`{"limits":{"cpu":"2","memory":"4Gi","nvidia.com/gpu":1},"requests":{"cpu":"2","memory":"4Gi"}}`))
		merge(`{"resourceType":"large"}`)
		Expect(stored("{.spec.resources}")()).To(Equal(`{"limits":{"cpu":"4","memory":"8Gi","nvidia.com/gpu":1},"requests":{"cpu":"4","memory":"8Gi"}}`))
		merge(`{"resourceType":null,"resources":null}`)
		By("empty resources under custom")
		kubectl(manifest(`{"image":"a:1","resourceType":"custom","resources":{}}`), "apply", "--server-side", "--field-manager=other", "-f", "-")
		Expect(stored("{.spec.resourceType} {.spec.resources}")()).To(Equal(`custom {}`))
	})

	It("warns about a spec that is allowed but risky", func() {
		box.Spec.Image = "nginx"
		manifest, err := json.Marshal(map[string]any{
			"apiVersion": "model.github.com/v1", "kind": "ModelBox",
			"metadata": map[string]any{"name": "box"}, "spec": map[string]any{"image": "nginx"},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(kubectl(string(manifest), "apply", "-f", "-")).To(And(ContainSubstring("Warning: "), ContainSubstring("spec.image")))
	})

	It("is refused, on an update, only for errors that the update adds", func() {
		box.Spec.Image = "From Before The Rules"
		withoutWebhooks(ctx, func() error { return env.Client.Create(ctx, box) })
		Expect(box.Spec.ResourceType).To(BeEmpty(), "admission did not see it")
		box.Spec.Replicas = new(int32(2))
		Expect(env.Client.Update(ctx, box)).To(Succeed())
		Expect(box.Spec.ResourceType).To(Equal(modelv1.ResourceTypeSmall))
		box.Spec.Image = "Another Wrong One"
		Expect(env.Client.Update(ctx, box)).To(MatchError(ContainSubstring("spec.image")))
	})

	It("calls the webhooks for a create and a change of spec, and for nothing else", func() {
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		mark := calls()
		box.Labels = map[string]string{"a": "b"}
		Expect(env.Client.Update(ctx, box)).To(Succeed())
		box.Status.Address = "x"
		Expect(env.Client.Status().Update(ctx, box)).To(Succeed())
		Expect(calls()).To(Equal(mark))
		box.Spec.Replicas = new(int32(3))
		Expect(env.Client.Update(ctx, box)).To(Succeed())
		Expect(calls()).To(Equal(mark+2), "one call of each webhook")
		Expect(env.Client.Delete(ctx, box)).To(Succeed())
		Expect(calls()).To(Equal(mark + 2))
	})
})
