// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

var _ = Describe("the size of a spec", func() {
	var box *modelv1.ModelBox
	BeforeEach(func() {
		box = &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(), Name: "box"}, Spec: modelv1.ModelBoxSpec{Image: "a:1"}}
	})
	variables := func(n int) (list []corev1.EnvVar) {
		for i := range n {
			list = append(list, corev1.EnvVar{Name: fmt.Sprint("V", i), Value: strings.Repeat("x", 50<<10)})
		}
		return list
	}
	tooLong := And(ContainSubstring("spec: Too long: has "), ContainSubstring("bytes; at most 131072 are allowed"),
		ContainSubstring("ConfigMap"), ContainSubstring("envFrom"))

	It("is bounded, and the way out is a ConfigMap", func(ctx context.Context) {
		box.Spec.Envs = variables(3)
		err := env.Client.Create(ctx, box)
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(tooLong))
		data := map[string]string{}
		for _, v := range box.Spec.Envs {
			data[v.Name] = v.Value
		}
		Expect(env.Client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: box.Namespace, Name: "large"}, Data: data})).To(Succeed())
		box.Spec.Envs = nil
		box.Spec.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "large"}}}}
		Expect(env.Client.Create(ctx, box)).To(Succeed())
	})

	It("may stay as it is if it was stored before there was a bound", func(ctx context.Context) {
		box.Spec.Envs = variables(4)
		withoutWebhooks(ctx, func() error { return env.Client.Create(ctx, box) })
		box.Labels = map[string]string{"a": "b"}
		Expect(env.Client.Update(ctx, box)).To(Succeed())
		box.Spec.Envs = variables(3)
		Expect(env.Client.Update(ctx, box)).To(MatchError(tooLong), "a change is within the bounds, or refused")
		box.Spec.Envs = variables(2)
		Expect(env.Client.Update(ctx, box)).To(Succeed())
		Expect(box.Spec.ResourceType).To(Equal(modelv1.ResourceTypeSmall), "the defaults are set all the same")
	})

	It("is bounded while the object is being deleted, and its finalizers can be removed", func(ctx context.Context) {
		box.Finalizers = []string{"example.com/hold"}
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		Expect(env.Client.Delete(ctx, box)).To(Succeed())
		merge := func(patch string) error {
			return env.Client.Patch(ctx, box.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
		}
		for _, depth := range []int{1000, 9994} {
			deep := strings.Repeat(`{"a":`, depth) + "{}" + strings.Repeat("}", depth)
			Expect(merge(`{"spec":{"podTemplate":`+deep+`}}`)).NotTo(Succeed(), "%d levels", depth)
		}
		Expect(merge(`{"spec":{"podTemplate":{"metadata":{"annotations":{"a":"` + strings.Repeat("x", 128<<10) + `"}}}}}`)).To(MatchError(tooLong))
		Expect(merge(`{"spec":{"image":"Not An Image"}}`)).To(Succeed(), "the other rules do not matter any more")
		Expect(env.Client.List(ctx, &modelv1.ModelBoxList{}, client.InNamespace(box.Namespace))).To(Succeed())
		Expect(merge(`{"metadata":{"finalizers":null}}`)).To(Succeed())
		Expect(apierrors.IsNotFound(env.Client.Get(ctx, client.ObjectKeyFromObject(box), box))).To(BeTrue())
	})
})
