// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

var dry = []string{metav1.DryRunAll}

// requestOf has a request for each verb, for an object or one of its subresources. The requests
// change nothing.
var requestOf = map[string]func(context.Context, dynamic.ResourceInterface, *unstructured.Unstructured, ...string) error{
	"get": func(ctx context.Context, c dynamic.ResourceInterface, obj *unstructured.Unstructured, sub ...string) error {
		_, err := c.Get(ctx, obj.GetName(), metav1.GetOptions{}, sub...)
		return err
	},
	"list": func(ctx context.Context, c dynamic.ResourceInterface, _ *unstructured.Unstructured, _ ...string) error {
		_, err := c.List(ctx, metav1.ListOptions{})
		return err
	},
	"watch": func(ctx context.Context, c dynamic.ResourceInterface, _ *unstructured.Unstructured, _ ...string) error {
		watch, err := c.Watch(ctx, metav1.ListOptions{})
		if err == nil {
			watch.Stop()
		}
		return err
	},
	"create": func(ctx context.Context, c dynamic.ResourceInterface, obj *unstructured.Unstructured, _ ...string) error {
		another := &unstructured.Unstructured{Object: map[string]any{"spec": obj.Object["spec"]}}
		another.SetGroupVersionKind(obj.GroupVersionKind())
		another.SetName("another")
		_, err := c.Create(ctx, another, metav1.CreateOptions{DryRun: dry})
		return err
	},
	"update": func(ctx context.Context, c dynamic.ResourceInterface, obj *unstructured.Unstructured, sub ...string) error {
		_, err := c.Update(ctx, obj, metav1.UpdateOptions{DryRun: dry}, sub...)
		return err
	},
	"patch": func(ctx context.Context, c dynamic.ResourceInterface, obj *unstructured.Unstructured, sub ...string) error {
		_, err := c.Patch(ctx, obj.GetName(), types.MergePatchType, []byte("{}"), metav1.PatchOptions{DryRun: dry}, sub...)
		return err
	},
	"delete": func(ctx context.Context, c dynamic.ResourceInterface, obj *unstructured.Unstructured, _ ...string) error {
		return c.Delete(ctx, obj.GetName(), metav1.DeleteOptions{DryRun: dry})
	},
	"deletecollection": func(ctx context.Context, c dynamic.ResourceInterface, _ *unstructured.Unstructured, _ ...string) error {
		return c.DeleteCollection(ctx, metav1.DeleteOptions{DryRun: dry}, metav1.ListOptions{})
	},
}

func reads(verb, _ string) bool { return verb == "get" || verb == "list" || verb == "watch" }

func readsAndWrites(verb, subresource string) bool {
	return reads(verb, subresource) || subresource != "status"
}

// The verbs are those that the API server serves for the project's kinds.
var _ = DescribeTable("a user with a role of Kubernetes in a namespace", func(ctx SpecContext, role string, may func(verb, subresource string) bool) {
	rights, err := testenv.Rights("config/aggregated-roles/roles.yaml", func(part *rbacv1.ClusterRole) bool {
		return part.Labels["rbac.authorization.k8s.io/aggregate-to-"+role] == "true"
	})
	Expect(err).NotTo(HaveOccurred())
	namespace := newNamespace()
	for i := range rights {
		rights[i].Namespace = namespace
	}
	grant(ctx, namespace, rights)
	cfg, err := env.User(namespace)
	Expect(err).NotTo(HaveOccurred())
	asUser, err := dynamic.NewForConfig(cfg)
	Expect(err).NotTo(HaveOccurred())
	asAdmin, err := dynamic.NewForConfig(env.Config)
	Expect(err).NotTo(HaveOccurred())

	got, want := map[string]bool{}, map[string]bool{}
	for kind, g := range guarantees {
		obj := g.object(metav1.ObjectMeta{Namespace: namespace, Name: "web"})
		Expect(env.Client.Create(ctx, obj)).To(Succeed())
		gvk, err := env.Client.GroupVersionKindFor(obj)
		Expect(err).NotTo(HaveOccurred())
		for _, row := range servedOf(gvk) {
			resource, subresource, _ := strings.Cut(row.Name, "/")
			var sub []string
			if subresource != "" {
				sub = []string{subresource}
			}
			gvr := gvk.GroupVersion().WithResource(resource)
			live, err := asAdmin.Resource(gvr).Namespace(namespace).Get(ctx, "web", metav1.GetOptions{}, sub...)
			Expect(err).NotTo(HaveOccurred())
			for _, verb := range row.Verbs {
				err := requestOf[verb](ctx, asUser.Resource(gvr).Namespace(namespace), live, sub...)
				// The controller may have changed the object meanwhile.
				Expect(err).To(Or(BeNil(), Satisfy(apierrors.IsConflict), Satisfy(apierrors.IsForbidden)), "%s %s", verb, row.Name)
				got[verb+" "+row.Name], want[verb+" "+row.Name] = !apierrors.IsForbidden(err), may(verb, subresource)
			}
		}
		Expect(want).To(HaveKey(ContainSubstring("deletecollection "+strings.ToLower(kind))), "the verbs are tested")
	}
	Expect(cmp.Diff(want, got)).To(BeEmpty(), "-want +got")
},
	Entry("view reads all and writes nothing", "view", reads),
	Entry("edit writes all but status", "edit", readsAndWrites),
	Entry("admin does too", "admin", readsAndWrites),
)

// servedOf returns the resource and subresources that the API server serves for a kind, with
// their verbs.
func servedOf(gvk schema.GroupVersionKind) []metav1.APIResource {
	GinkgoHelper()
	client, err := discovery.NewDiscoveryClientForConfig(env.Config)
	Expect(err).NotTo(HaveOccurred())
	list, err := client.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	Expect(err).NotTo(HaveOccurred())
	Expect(list.APIResources).NotTo(BeEmpty())
	return list.APIResources
}
