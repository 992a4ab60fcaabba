// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/command"
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

	It("calls the webhooks for a create and a change of spec, and for nothing else", func(ctx SpecContext) {
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		mark := calls(ctx)
		box.Labels = map[string]string{"a": "b"}
		Expect(env.Client.Update(ctx, box)).To(Succeed())
		box.Status.Address = "x"
		Expect(env.Client.Status().Update(ctx, box)).To(Succeed())
		Expect(calls(ctx)).To(Equal(mark))
		box.Spec.Replicas = new(int32(3))
		Expect(env.Client.Update(ctx, box)).To(Succeed())
		Expect(calls(ctx)).To(Equal(mark+2), "one call of each webhook")
		Expect(env.Client.Delete(ctx, box)).To(Succeed())
		Expect(calls(ctx)).To(Equal(mark + 2))
	})
})

// The process reads the file again when it changes. Stored objects keep what they have until they are resized.
var _ = Describe("sizes", Serial, func() {
	const sizes = `sizes: {llm: {resources: {limits: {cpu: 1}}, server: {image: "IMAGE", args: ["--model=${model.path}", "--port=${port}"], port: 8000}}}`
	It("are filled in, and written again by modelbox resize", func(ctx SpecContext) {
		path := filepath.Join(GinkgoT().TempDir(), "sizes.yaml")
		write := func(image string) {
			GinkgoHelper()
			Expect(os.WriteFile(path, bytes.ReplaceAll([]byte(sizes), []byte("IMAGE"), []byte(image)), 0o600)).To(Succeed())
		}
		write("llm:1")
		stop()
		start(func(o *options) { o.sizes = path })
		DeferCleanup(func() {
			stop()
			start(nil)
		})
		box := &modelv1.ModelBox{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sized"},
			Spec:       modelv1.ModelBoxSpec{ResourceType: "llm", ModelFileURL: "https://example.com/a.bin"},
		}
		fresh := box.DeepCopy()
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) error { return env.Client.Delete(ctx, box) })
		Expect(box.Spec.Image).To(Equal("llm:1"))
		Expect(box.Spec.Args).To(Equal([]string{"--model=/models", "--port=8000"}))

		write("llm:2")
		Eventually(func(g Gomega) {
			other := fresh.DeepCopy()
			other.Name = "other"
			g.Expect(env.Client.Create(ctx, other, client.DryRunAll)).To(Succeed())
			g.Expect(other.Spec.Image).To(Equal("llm:2"))
		}).Should(Succeed())
		scaled := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":2,"command":["serve"]}}`))
		Expect(env.Client.Patch(ctx, box, scaled)).To(Succeed())
		Expect(box.Spec.Image).To(Equal("llm:1"))

		modelbox := func(args ...string) string {
			GinkgoHelper()
			var out, errOut bytes.Buffer
			streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut}
			code := command.Run(command.Env{IOStreams: streams, Program: "modelbox", Clock: clock.RealClock{}, Client: env.Client},
				append(args, "--namespace", "default"))
			Expect(code).To(BeZero(), errOut.String())
			return out.String()
		}
		Expect(modelbox("status", "--sizes", path)).To(MatchRegexp(`sized +llm +image\n`))
		Expect(modelbox("resize", "modelbox/sized")).To(Equal("modelbox/sized resized: image\n"))
		Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(box), box)).To(Succeed())
		Expect(box.Spec.Image).To(Equal("llm:2"))
		Expect(box.Spec.Command).To(Equal([]string{"serve"}))
		Expect(modelbox("resize", "modelbox/sized")).To(Equal("modelbox/sized has the current values of size llm already\n"))
		Expect(modelbox("status", "--sizes", path)).NotTo(ContainSubstring("sized"))
		Expect(modelbox("sizes", "--sizes", path)).To(MatchRegexp(`llm +1 +- +- +llm:2 +yes`))
	})
})
