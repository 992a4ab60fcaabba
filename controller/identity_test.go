// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// owned returns the metadata of an object with a controller reference to an owner.
func owned(namespace, name string, owner client.Object) metav1.ObjectMeta {
	gvk, err := env.Client.GroupVersionKindFor(owner)
	Expect(err).NotTo(HaveOccurred())
	return metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, gvk)}}
}

// request is a request with the credentials of a user. It is a dry run where there is one.
type request func(context.Context, *rest.Config) error

func asUser(do func(context.Context, client.Client) error) request {
	return func(ctx context.Context, cfg *rest.Config) error {
		c, err := client.New(cfg, client.Options{Scheme: env.Client.Scheme()})
		if err != nil {
			return err
		}
		return do(ctx, c)
	}
}

func creates(obj client.Object) request {
	return asUser(func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, obj.DeepCopyObject().(client.Object), client.DryRunAll)
	})
}

// patches changes an object that exists. The controller's role has patch and not update.
func patches[T client.Object](obj T, how func(T)) request {
	return asUser(func(ctx context.Context, c client.Client) error {
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		before := obj.DeepCopyObject().(T)
		how(obj)
		return c.Patch(ctx, obj, client.MergeFrom(before), client.DryRunAll)
	})
}

func patchesSubresource(obj client.Object, subresource, body string) request {
	return asUser(func(ctx context.Context, c client.Client) error {
		patch := client.RawPatch(types.MergePatchType, []byte(body))
		return c.SubResource(subresource).Patch(ctx, obj.DeepCopyObject().(client.Object), patch, &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}}})
	})
}

func deploymentOf(obj metav1.ObjectMeta) *appsv1.Deployment {
	return foreignDeployment(obj).(*appsv1.Deployment)
}

var _ = Describe("the policy of the controller", func() {
	It("gets no workloads in a namespace that is closed to them, and the status says how to open it", func(ctx SpecContext) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "kube-spec-"}}
		Expect(env.Client.Create(ctx, namespace)).To(Succeed())
		DeferCleanup(removeAll, namespace.Name)
		box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "box"}, Spec: modelv1.ModelBoxSpec{Image: "nginx:1"}}
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		Eventually(readiness(ctx, box)).Should(Equal("False ChildRefused"))
		Expect(message(ctx, box)()).To(
			ContainSubstring("set the label modelbox-operator.github.io/workloads=allowed on the namespace"))

		label := func(value string) {
			change(ctx, namespace, func(n *corev1.Namespace) { n.Labels["modelbox-operator.github.io/workloads"] = value })
		}
		label("allowed")
		// The admission plugin has an informer of its own, which may see the label later.
		Eventually(func(g Gomega) {
			change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Image += "1" })
			g.Eventually(readiness(ctx, box)).WithTimeout(time.Second).Should(Equal("False Progressing"))
		}).Should(Succeed())

		label("denied")
		Eventually(func(g Gomega) {
			change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Image += "1" })
			g.Eventually(readiness(ctx, box)).WithTimeout(time.Second).Should(Equal("False ChildRefused"))
		}).Should(Succeed())
	})

	It("gets no workloads in the controller's own namespace", func(ctx SpecContext) {
		Expect(client.IgnoreAlreadyExists(env.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controllerNamespace}}))).To(Succeed())
		DeferCleanup(removeAll, controllerNamespace)
		box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: controllerNamespace, Name: "box"}, Spec: modelv1.ModelBoxSpec{Image: "nginx:1"}}
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		Eventually(readiness(ctx, box)).Should(Equal("False ChildRefused"))
		Expect(message(ctx, box)()).To(ContainSubstring("its own: use another namespace"))
	})
})
