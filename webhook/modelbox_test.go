// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/command"
)

// boxIn returns a ModelBox in a namespace of its own.
func boxIn() *modelv1.ModelBox {
	GinkgoHelper()
	return &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(), Name: "box"}, Spec: modelv1.ModelBoxSpec{Image: "nginx:1.7.9", Ports: []modelv1.Port{{Port: 80}}}}
}

var _ = It("an update is refused only for errors that it adds", func(ctx SpecContext) {
	box := boxIn()
	box.Spec.Image = "From Before The Rules"
	withoutWebhooks(ctx, func() error { return env.Client.Create(ctx, box) })
	Expect(box.Spec.ResourceType).To(BeEmpty(), "admission did not see it")
	box.Spec.Replicas = new(int32(2))
	Expect(env.Client.Update(ctx, box)).To(Succeed())
	Expect(box.Spec.ResourceType).To(Equal(modelv1.ResourceTypeSmall))
	box.Spec.Image = "Another Wrong One"
	Expect(env.Client.Update(ctx, box)).To(MatchError(ContainSubstring("spec.image")))
})

var _ = It("the webhooks are called for a create and a change of spec, and for nothing else", func(ctx SpecContext) {
	box := boxIn()
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

// The size of a spec is bounded for an object in deletion too, and no other rule matters.
var _ = It("an object that is being deleted grows no more, and its finalizers can be removed", func(ctx SpecContext) {
	box := boxIn()
	box.Finalizers = []string{"example.com/hold"}
	Expect(env.Client.Create(ctx, box)).To(Succeed())
	Expect(env.Client.Delete(ctx, box)).To(Succeed())
	merge := func(patch string) error {
		return env.Client.Patch(ctx, box.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	Expect(merge(`{"spec":{"podTemplate":` + strings.Repeat(`{"a":`, 1000) + "{}" + strings.Repeat("}", 1000) + `}}`)).NotTo(Succeed())
	Expect(merge(`{"spec":{"podTemplate":{"metadata":{"annotations":{"a":"` + strings.Repeat("x", 128<<10) + `"}}}}}`)).
		To(MatchError(And(ContainSubstring("bytes; at most 131072 are allowed"), ContainSubstring("envFrom"))))
	Expect(merge(`{"spec":{"image":"Not An Image"}}`)).To(Succeed())
	Expect(merge(`{"metadata":{"finalizers":null}}`)).To(Succeed())
	Expect(apierrors.IsNotFound(env.Client.Get(ctx, client.ObjectKeyFromObject(box), box))).To(BeTrue())
})

// Stored objects keep what they have until they are resized.
var _ = Describe("sizes", Serial, func() {
	const sizes = `sizes: {llm: {resources: {limits: {cpu: 1}}, server: {image: "IMAGE", args: ["--model=${model.path}", "--port=${port}"], port: 8000}}}`
	It("are filled in, and written again by modelbox resize", func(ctx SpecContext) {
		path := filepath.Join(GinkgoT().TempDir(), "sizes.yaml")
		write := func(image string) {
			GinkgoHelper()
			Expect(os.WriteFile(path, bytes.ReplaceAll([]byte(sizes), []byte("IMAGE"), []byte(image)), 0o600)).To(Succeed())
		}
		again := func(image string) {
			write(image)
			stop()
			start(func(o *options) { o.sizes = path })
		}
		again("llm:1")
		DeferCleanup(func() {
			stop()
			start(nil)
		})
		box := &modelv1.ModelBox{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sized"},
			Spec:       modelv1.ModelBoxSpec{ResourceType: "llm", ModelFileURL: "https://example.com/a.bin"},
		}
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) error { return env.Client.Delete(ctx, box) })
		Expect(box.Spec.Image).To(Equal("llm:1"))
		Expect(box.Spec.Args).To(Equal([]string{"--model=/models", "--port=8000"}))

		again("llm:2")
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
