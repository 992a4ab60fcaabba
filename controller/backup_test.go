// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/cli/adopt"
	clikinds "github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/rollout"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/kinds/all"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
)

// The rows of the table in docs/operations.md#backups, for all kinds with pods and all their fields.
var _ = Describe("what was backed up and deleted", Ordered, ContinueOnFailure, func() {
	BeforeAll(func() {
		stop()
		installOptionalKinds()
		installCRD(autoscalersCRD)
		start()
	})

	DescribeTable("is restored as it was",
		func(ctx SpecContext, restore func(*backup)) {
			var restored atomic.Int32
			names := sampledManifests()
			each(names, func(of string) {
				b := newBackup(ctx, of)
				restore(b)
				b.expectWhole()
				restored.Add(int32(1 + len(b.children)))
			})
			AddReportEntry(fmt.Sprintf("%d objects and children", restored.Load()))
			Expect(restored.Load()).To(BeNumerically(">", 2*len(names)))
		},
		Entry("the objects before their children", func(b *backup) {
			b.restoreOwner()
			b.expectWhole()
			b.restoreChildren(true)
		}),
		Entry("the objects with their status", func(b *backup) {
			b.restoreOwner()
			Eventually(func() error {
				said := fmt.Appendf(nil, `{"status":%s}`, asJSON(b.owner.Object["status"]))
				return env.Client.Status().Patch(b.ctx, b.live.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, said))
			}).Should(Succeed())
		}),
		Entry("children first, with their owner references", func(b *backup) {
			b.keepReferences = true
			versions := b.restoreChildren(false)
			b.restoreOwner()
			Eventually(readiness(b.ctx, b.live)).Should(Equal("False WaitingForDeletion"), b.of)
			Expect(message(b.ctx, b.live)()).To(ContainSubstring("waits for garbage collection"))
			Expect(b.versions()).To(Equal(versions), b.of)
			b.deleteChildren() // As the garbage collector does.
		}),
		Entry("children first, without owner references, which are deleted then", func(b *backup) {
			b.conflict()
			b.deleteChildren()
		}),
		Entry("children first, without owner references, which are given to the objects then", func(b *backup) {
			b.conflict()
			b.giveChildren()
		}),
	)
})

// backup is an object and its children as they were read. They do not exist any more.
type backup struct {
	ctx      context.Context
	of       string
	owner    *unstructured.Unstructured
	children []*unstructured.Unstructured
	// live is the object that was restored.
	live status.Object
	// keepReferences restores the owner references, with the uid that the object had.
	keepReferences bool
}

// laterFields are those with which an object is not Ready on a version before 1.35.
var laterFields = regexp.MustCompile(`"oci://|` + removedFields.String())

// servedManifests are the names of the manifests whose objects are Ready on this version.
func servedManifests() []string {
	GinkgoHelper()
	names := slices.Sorted(maps.Keys(ownerManifests))
	if lacks(35, "image volumes") != "" {
		names = slices.DeleteFunc(names, func(of string) bool { return laterFields.Match(ownerManifests[of]) })
	}
	return names
}

// sampledManifests are those with most fields, with every block, and of an adopted Deployment, and some others with each
// seed. make test-long takes all.
func sampledManifests() []string {
	GinkgoHelper()
	i := GinkgoRandomSeed()
	return slices.DeleteFunc(servedManifests(), func(of string) bool {
		i++
		always := strings.HasSuffix(of, "/everything") || of == "modelbox/children" || of == "app/adopted"
		return !thoroughly && !always && i%8 != 0
	})
}

// newStored creates an object of a golden test, as admission leaves it, waits until it is ready, and reads it and its children.
func newStored(ctx context.Context, of string) *backup {
	GinkgoHelper()
	created := ownerOf(ownerManifests[of], newNamespace())
	gvk, err := env.Client.GroupVersionKindFor(created)
	Expect(err).NotTo(HaveOccurred())
	all.Of(gvk.GroupKind()).SetDefaults(created, nil)
	DeferCleanup(func(ctx context.Context) { deleteOwner(ctx, created) })
	Expect(env.Client.Create(ctx, created)).To(Succeed(), of)
	b := &backup{ctx: ctx, of: of, owner: &unstructured.Unstructured{}, live: created}
	b.expectReady()
	b.owner.SetGroupVersionKind(gvk)
	Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(created), b.owner)).To(Succeed())
	b.children = b.list()
	return b
}

// newBackup is newStored, and deletes all.
func newBackup(ctx context.Context, of string) *backup {
	GinkgoHelper()
	b := newStored(ctx, of)
	Expect(env.Client.Delete(ctx, b.live.DeepCopyObject().(client.Object))).To(Succeed())
	Eventually(exists(ctx, b.live)).Should(BeFalse())
	b.deleteChildren()
	return b
}

// kindsOfChildren are those that an object may have.
func kindsOfChildren() []schema.GroupVersionKind {
	kinds := []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
		appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), corev1.SchemeGroupVersion.WithKind("Service"),
	}
	for _, block := range children.Blocks {
		kinds = append(kinds, block.Kind)
	}
	return kinds
}

// list returns all objects of the kinds of children in the namespace.
func (b *backup) list() (found []*unstructured.Unstructured) {
	GinkgoHelper()
	for _, gvk := range kindsOfChildren() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		Expect(env.Client.List(b.ctx, list, client.InNamespace(b.live.GetNamespace()))).To(Succeed())
		for i := range list.Items {
			found = append(found, &list.Items[i])
		}
	}
	return found
}

func (b *backup) versions() map[string]string {
	GinkgoHelper()
	versions := map[string]string{}
	for _, child := range b.list() {
		versions[child.GetKind()+"/"+child.GetName()] = child.GetResourceVersion()
	}
	return versions
}

func (b *backup) deleteChildren() {
	GinkgoHelper()
	for _, child := range b.list() {
		uid := child.GetUID() // The operator may have created another one already.
		Expect(client.IgnoreNotFound(env.Client.Delete(b.ctx, child, client.Preconditions{UID: &uid}))).To(Succeed(), b.of)
	}
}

// restored returns an object as a tool creates it from what was read.
func (b *backup) restored(read *unstructured.Unstructured) *unstructured.Unstructured {
	out := read.DeepCopy()
	delete(out.Object, "status")
	out.SetUID("")
	out.SetResourceVersion("")
	out.SetManagedFields(nil)
	if !b.keepReferences {
		out.SetOwnerReferences(nil)
	}
	return out
}

func (b *backup) restoreOwner() {
	GinkgoHelper()
	Expect(env.Client.Create(b.ctx, b.restored(b.owner))).To(Succeed(), b.of)
}

// restoreChildren restores the children, and returns their versions. Those that are there are refused.
func (b *backup) restoreChildren(there bool) map[string]string {
	GinkgoHelper()
	for _, child := range b.children {
		err := env.Client.Create(b.ctx, b.restored(child))
		Expect(err != nil).To(Equal(there), "%s: %s: %v", b.of, child.GetKind(), err)
	}
	return b.versions()
}

// conflict restores the children and then the object, which changes none of them, and says what to do.
func (b *backup) conflict() {
	GinkgoHelper()
	versions := b.restoreChildren(false)
	b.restoreOwner()
	Eventually(readiness(b.ctx, b.live)).Should(Equal("False NameConflict"), b.of)
	Expect(message(b.ctx, b.live)()).To(ContainSubstring("it is not changed; delete or rename it"), b.of)
	Expect(meta.IsStatusConditionTrue(b.live.GetConditions(), status.ConditionStalled)).To(BeTrue(), b.of)
	Expect(b.versions()).To(Equal(versions), b.of)
}

// giveChildren gives the object its children as they are. The Deployment of one that has adopted it has no label of the operator, and
// is adopted again.
func (b *backup) giveChildren() {
	GinkgoHelper()
	before, kind, key := b.list(), clikinds.Of(b.owner.GroupVersionKind().GroupKind()), client.ObjectKeyFromObject(b.owner)
	give := func(a *adopt.Adoption, err error) {
		Expect(err).NotTo(HaveOccurred(), b.of)
		Expect(a.Conflicts).To(BeEmpty(), b.of)
		Expect(a.Run(b.ctx, false, GinkgoT().Logf)).To(Succeed(), b.of)
	}
	if _, adopted, _ := unstructured.NestedMap(b.owner.Object, "spec", "selector"); adopted {
		service, named, _ := unstructured.NestedString(b.owner.Object, "spec", "service", "name")
		if _, withService, _ := unstructured.NestedSlice(b.owner.Object, "spec", "ports"); withService && !named {
			service = key.Name
		}
		a := &adopt.Adoption{Client: env.Client, FieldManager: "modelbox-cli"}
		give(a, a.Prepare(b.ctx, kind, key, service))
	}
	a := &adopt.Adoption{Client: env.Client, FieldManager: "modelbox-cli"}
	give(a, a.PrepareRestored(b.ctx, kind, key))
	b.expectWhole()
	after := b.list()
	Expect(after).To(HaveLen(len(before)), b.of)
	for i, was := range before {
		now := after[i]
		Expect([]any{now.GetKind(), now.GetUID(), now.GetGeneration()}).To(Equal([]any{was.GetKind(), was.GetUID(), was.GetGeneration()}), b.of)
		for _, entry := range now.GetManagedFields() { // What leaves the object leaves the child.
			if entry.Manager != apply.FieldManager && entry.Subresource == "" {
				others := rollout.FieldsOf(entry.FieldsV1)
				Expect(others.Intersection(rollout.OfOperator(now.GetManagedFields())).String()).To(BeEmpty(), "%s: %s", b.of, now.GetKind())
				Expect(others.String()).NotTo(Or(ContainSubstring(".spec.template"), ContainSubstring(".spec.ports")), "%s: %s", b.of, now.GetKind())
			}
		}
	}
}

// expectReady waits until the object is ready, with rollouts that complete.
func (b *backup) expectReady() {
	GinkgoHelper()
	Eventually(func() string {
		rollOutAll(b.ctx, b.live.GetNamespace())
		return readiness(b.ctx, b.live)()
	}).Should(Equal("True Ready"), "%s", b.of)
}

// expectWhole waits until the object and its children have what they had, and it is ready. A status that was restored
// may say so before.
func (b *backup) expectWhole() {
	GinkgoHelper()
	want := map[string]string{"": contentOf(b.owner)}
	for _, child := range b.children {
		want[child.GetKind()+"/"+child.GetName()] = contentOf(child)
	}
	Eventually(func() map[string]string {
		Expect(env.Client.Get(b.ctx, client.ObjectKeyFromObject(b.live), b.live)).To(Succeed())
		now := b.owner.DeepCopy()
		Expect(env.Client.Get(b.ctx, client.ObjectKeyFromObject(b.live), now)).To(Succeed())
		have := map[string]string{"": contentOf(now)}
		for _, child := range b.list() {
			if metav1.IsControlledBy(child, b.live) {
				have[child.GetKind()+"/"+child.GetName()] = contentOf(child)
			}
		}
		return have
	}).Should(Equal(want), b.of)
	b.expectReady()
}

// contentOf returns what an object has of its users, without what the API server chooses.
func contentOf(obj *unstructured.Unstructured) string {
	content := obj.DeepCopy()
	for _, field := range []string{"status", "metadata"} {
		delete(content.Object, field)
	}
	for _, chosen := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
		unstructured.RemoveNestedField(content.Object, "spec", chosen)
	}
	ports, _, _ := unstructured.NestedSlice(content.Object, "spec", "ports")
	for _, port := range ports {
		if fields, ok := port.(map[string]any); ok && obj.GetKind() == "Service" {
			delete(fields, "nodePort")
		}
	}
	if len(ports) > 0 {
		Expect(unstructured.SetNestedSlice(content.Object, ports, "spec", "ports")).To(Succeed())
	}
	return asJSON(content.Object) + asJSON(obj.GetLabels())
}
