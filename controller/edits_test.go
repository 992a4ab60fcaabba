// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	gocmp "github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
)

const otherManager = client.FieldOwner("another-manager")

// tree is an object in JSON.
type tree = map[string]any

// childEdit is one request by which another field manager edits a child: see testdata/edits.yaml.
type childEdit struct {
	Of, Child, Name                string
	Patch, Merge, Strategic, Apply json.RawMessage
	// Left is what is left of the edit after a reconcile, and Kept that all of it is.
	Left         json.RawMessage
	Kept         bool
	NewNodePorts bool
}

// send sends the request.
func (e childEdit) send(ctx context.Context, child *unstructured.Unstructured) error {
	if e.Apply != nil {
		body := &unstructured.Unstructured{}
		if err := json.Unmarshal(e.Apply, &body.Object); err != nil {
			return err
		}
		body.SetGroupVersionKind(child.GroupVersionKind())
		body.SetNamespace(child.GetNamespace())
		body.SetName(child.GetName())
		return env.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), otherManager, client.ForceOwnership)
	}
	forms := map[types.PatchType]json.RawMessage{
		types.JSONPatchType: e.Patch, types.MergePatchType: e.Merge, types.StrategicMergePatchType: e.Strategic,
	}
	maps.DeleteFunc(forms, func(_ types.PatchType, body json.RawMessage) bool { return body == nil })
	for form, body := range forms {
		return env.Client.Patch(ctx, child.DeepCopy(), client.RawPatch(form, body), otherManager)
	}
	return fmt.Errorf("%s has no request", e.Name)
}

// specChange is a JSON patch of an owner, and what its status reports if it cannot be applied.
type specChange struct {
	Of       string
	Patch    json.RawMessage
	Reported string
}

// corpus are the cases of testdata/edits.yaml.
type corpus struct {
	Edits   []childEdit
	Changes []specChange
}

func readCorpus() corpus {
	var c corpus
	data, err := os.ReadFile("testdata/edits.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(data, &c)
	}
	if err != nil {
		panic(err) // It is a file of the repository, which is read before any spec runs.
	}
	return c
}

// ownerManifests are the manifests of the golden tests, and those in testdata/edits, which have
// more fields, by kind and name: "modelbox/everything".
var ownerManifests = func() map[string][]byte {
	all := map[string][]byte{}
	for _, folder := range []string{"../kinds/modelbox/testdata", "../kinds/app/testdata", "../kinds/genericdaemon/testdata", "testdata/edits"} {
		files, _ := filepath.Glob(filepath.Join(folder, "*.yaml")) // The pattern is valid.
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err == nil {
				data, err = yaml.YAMLToJSON(data)
			}
			if err != nil {
				panic(err)
			}
			if object := (unstructured.Unstructured{}); !strings.HasSuffix(file, ".golden.yaml") && object.UnmarshalJSON(data) == nil {
				all[strings.ToLower(object.GetKind())+"/"+strings.TrimSuffix(filepath.Base(file), ".yaml")] = data
			}
		}
	}
	return all
}()

// preferSame are values of trafficDistribution that versions before 1.34 refuse.
var preferSame = regexp.MustCompile("PreferSame(Zone|Node)")

// asServed returns a manifest or a patch with PreferClose, which all versions accept, where the version
// refuses the later values.
func asServed(text []byte) []byte {
	GinkgoHelper()
	if lacks(34, "PreferSameZone") == "" {
		return text
	}
	return preferSame.ReplaceAll(text, []byte("PreferClose"))
}

// ownerOf returns an owner for a namespace.
func ownerOf(manifest []byte, namespace string) status.Object {
	GinkgoHelper()
	manifest = asServed(manifest)
	object := &unstructured.Unstructured{}
	Expect(object.UnmarshalJSON(manifest)).To(Succeed())
	typed, err := env.Client.Scheme().New(object.GroupVersionKind())
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(manifest, typed)).To(Succeed())
	owner := typed.(status.Object)
	owner.SetNamespace(namespace)
	return owner
}

// createOwner creates an owner. At the end of the spec it deletes its objects, whose node ports
// those of other specs may have.
func createOwner(ctx context.Context, manifest []byte) (status.Object, error) {
	GinkgoHelper()
	owner := ownerOf(manifest, newNamespace())
	DeferCleanup(func(ctx context.Context) { deleteOwner(ctx, owner) })
	return owner, env.Client.Create(ctx, owner)
}

func deleteOwner(ctx context.Context, owner status.Object) {
	GinkgoHelper()
	for _, object := range []client.Object{owner, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: owner.GetNamespace(), Name: owner.GetName()}}} {
		Expect(client.IgnoreNotFound(env.Client.Delete(ctx, object))).To(Succeed())
	}
}

// patchOwner writes a JSON patch of an owner.
func patchOwner(ctx context.Context, owner status.Object, patch []byte) error {
	return env.Client.Patch(ctx, owner, client.RawPatch(types.JSONPatchType, asServed(patch)))
}

// imagePatch changes the image in an owner's spec, and with it all its pods.
func imagePatch(image string) []byte {
	return fmt.Appendf(nil, `[{"op":"replace","path":"/spec/image","value":%q}]`, image)
}

// childKinds are the kinds of all children, by their names.
var childKinds = func() map[string]schema.GroupVersionKind {
	all := map[string]schema.GroupVersionKind{"Service": corev1.SchemeGroupVersion.WithKind("Service")}
	for _, kind := range []string{"Deployment", "DaemonSet"} {
		all[kind] = appsv1.SchemeGroupVersion.WithKind(kind)
	}
	for _, block := range children.Blocks {
		all[block.Kind.Kind] = block.Kind
	}
	return all
}()

// childOf reads a child of an owner.
func childOf(ctx context.Context, owner client.Object, kind string) (*unstructured.Unstructured, error) {
	child := &unstructured.Unstructured{}
	child.SetGroupVersionKind(childKinds[kind])
	return child, env.Client.Get(ctx, client.ObjectKeyFromObject(owner), child)
}

// content returns what the operator and its users write to a child, for comparisons: the items
// of lists of objects have an order of their own, as an apply may add one at another place.
func content(child *unstructured.Unstructured) tree {
	child = child.DeepCopy()
	annotations := child.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return strings.HasPrefix(key, "model.github.com/") || key == appsv1.DeprecatedTemplateGeneration
	})
	for _, reference := range child.GetOwnerReferences() {
		Expect(reference.Controller).To(Equal(new(true)))
	}
	labels := map[string]any{}
	for key, value := range child.GetLabels() {
		labels[key] = value
	}
	return sorted(tree{"labels": labels, "annotations": fmt.Sprint(annotations), "owners": len(child.GetOwnerReferences()), "spec": child.Object["spec"]}).(tree)
}

func sorted(value any) any {
	switch value := value.(type) {
	case tree:
		for key := range value {
			value[key] = sorted(value[key])
		}
	case []any:
		for i := range value {
			value[i] = sorted(value[i])
		}
		if len(value) > 0 {
			if _, objects := value[0].(tree); objects {
				slices.SortFunc(value, func(a, b any) int { return cmp.Compare(asJSON(a), asJSON(b)) })
			}
		}
	}
	return value
}

func asJSON(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // It was read from JSON.
	}
	return string(data)
}

// patchedChild returns a child after a JSON patch, nil for none.
func patchedChild(child *unstructured.Unstructured, patch json.RawMessage) *unstructured.Unstructured {
	GinkgoHelper()
	if patch == nil {
		return child
	}
	decoded, err := jsonpatch.DecodePatch(patch)
	Expect(err).NotTo(HaveOccurred())
	data, err := decoded.Apply([]byte(asJSON(child.Object)))
	Expect(err).NotTo(HaveOccurred())
	out := &unstructured.Unstructured{}
	Expect(out.UnmarshalJSON(data)).To(Succeed())
	return out
}

// withImage returns a child after its owner's image changed.
func withImage(child *unstructured.Unstructured, from, to string) *unstructured.Unstructured {
	GinkgoHelper()
	out := &unstructured.Unstructured{}
	Expect(out.UnmarshalJSON([]byte(strings.ReplaceAll(asJSON(child.Object), `"image":"`+from+`"`, `"image":"`+to+`"`)))).To(Succeed())
	return out
}

// withoutKeys returns a value without some keys of its objects, and without empty objects. A
// server-side apply that removes the last field of an object removes the object, while one that
// was created empty stays; both have the same effect.
func withoutKeys(value any, keys ...string) any {
	switch value := value.(type) {
	case tree:
		maps.DeleteFunc(value, func(key string, inner any) bool {
			object, isObject := withoutKeys(inner, keys...).(tree)
			return slices.Contains(keys, key) || isObject && len(object) == 0
		})
	case []any:
		for _, item := range value {
			withoutKeys(item, keys...)
		}
	}
	return value
}

// chosenByServer are the fields of a Service that the API server chooses.
var chosenByServer = []string{"clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort"}

// try sends an edit to a child of an owner that the operator has created or, if applied, written
// since, and checks what is left of it after each reconcile.
func (e childEdit) try(ctx context.Context, applied bool) {
	GinkgoHelper()
	owner, err := createOwner(ctx, ownerManifests[e.Of])
	Expect(err).NotTo(HaveOccurred())
	d := drive()
	d.settled(ctx, owner)
	if applied {
		Expect(patchOwner(ctx, owner, imagePatch("registry.example.com/applied:1"))).To(Succeed())
		d.settled(ctx, owner)
	}
	before, err := childOf(ctx, owner, e.Child)
	Expect(err).NotTo(HaveOccurred())
	image := nested(&unstructured.Unstructured{Object: asTree(owner)}, "spec", "image").(string)
	want := patchedChild(before, e.Left)
	edit := func() {
		GinkgoHelper()
		live, err := childOf(ctx, owner, e.Child)
		Expect(err).NotTo(HaveOccurred())
		Expect(e.send(ctx, live)).To(Succeed())
		edited, err := childOf(ctx, owner, e.Child)
		Expect(err).NotTo(HaveOccurred())
		Expect(content(edited)).NotTo(Equal(content(live)), "the edit has no effect")
		if e.Kept {
			want = edited
		}
	}
	check := func(want *unstructured.Unstructured) {
		GinkgoHelper()
		live, err := childOf(ctx, owner, e.Child)
		Expect(err).NotTo(HaveOccurred())
		is, wanted := content(live), content(want)
		if e.NewNodePorts {
			withoutKeys(is, chosenByServer...)
			withoutKeys(wanted, chosenByServer...)
		}
		Expect(gocmp.Diff(wanted, is)).To(BeEmpty())
	}
	again := !e.Kept && e.Left == nil
	for _, controller := range []*driven{d, drive()} {
		edit()
		controller.settled(ctx, owner)
		check(want)
		if e.Kept {
			Expect(controller.events()).To(BeEmpty())
		} else {
			Expect(controller.events()).To(ConsistOf(MatchRegexp(`Repaired .*(another-manager|another field manager)`)))
		}
		if !again {
			break
		}
	}
	By("a change of the owner at the same time")
	if again {
		edit()
	}
	Expect(patchOwner(ctx, owner, imagePatch("registry.example.com/changed:1"))).To(Succeed())
	d.settled(ctx, owner)
	check(withImage(want, image, "registry.example.com/changed:1"))
}

func asTree(obj client.Object) tree {
	GinkgoHelper()
	var out tree
	Expect(json.Unmarshal([]byte(asJSON(obj)), &out)).To(Succeed())
	return out
}

// childrenOf returns the content of an owner's children by kind, without what differs between
// owners of one spec.
func childrenOf(ctx context.Context, owner client.Object) tree {
	GinkgoHelper()
	found := tree{}
	for kind := range childKinds {
		child, err := childOf(ctx, owner, kind)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}
		Expect(err).NotTo(HaveOccurred())
		found[kind] = withoutKeys(content(child), append(chosenByServer, "matchNames")...) // That is the namespace of the owner.
	}
	return found
}

// try changes an owner's spec and changes it back, and compares its children with those of new
// owners. It returns false if the API server or the operator refuses the changed spec.
func (c specChange) try(ctx context.Context) bool {
	GinkgoHelper()
	manifest := ownerManifests[c.Of]
	patch, err := jsonpatch.DecodePatch(c.Patch)
	Expect(err).NotTo(HaveOccurred())
	changed, err := patch.Apply(manifest)
	Expect(err).NotTo(HaveOccurred())
	fresh, err := createOwner(ctx, changed)
	if apierrors.IsInvalid(err) {
		return false
	}
	Expect(err).NotTo(HaveOccurred())
	defer deleteOwner(ctx, fresh)
	if _, _, err := drive().reconcile(ctx, fresh); err != nil || ready(ctx, fresh).Reason != status.ReasonProgressing && c.Reported == "" {
		return false
	}
	want := childrenOf(ctx, fresh)
	deleteOwner(ctx, fresh)
	owner, err := createOwner(ctx, manifest)
	Expect(err).NotTo(HaveOccurred())
	defer deleteOwner(ctx, owner)
	d := drive()
	d.settled(ctx, owner)
	before := childrenOf(ctx, owner)
	Expect(patchOwner(ctx, owner, c.Patch)).To(Succeed())
	if c.Reported != "" {
		_, _, _ = d.reconcile(ctx, owner) // The status has the error.
		Expect(ready(ctx, owner).Message).To(ContainSubstring(c.Reported))
		return true
	}
	d.settled(ctx, owner)
	Expect(gocmp.Diff(want, childrenOf(ctx, owner))).To(BeEmpty(), "%s %s", c.Of, c.Patch)
	back := owner.DeepCopyObject().(status.Object)
	spec := fmt.Appendf(nil, `[{"op":"replace","path":"/spec","value":%s}]`, asJSON(asTree(ownerOf(manifest, ""))["spec"]))
	Expect(patchOwner(ctx, back, spec)).To(Succeed())
	d.settled(ctx, owner)
	Expect(gocmp.Diff(before, childrenOf(ctx, owner))).To(BeEmpty(), "%s without %s again", c.Of, c.Patch)
	return true
}

var _ = Describe("an edit", Ordered, ContinueOnFailure, long, func() {
	BeforeAll(func() {
		alone()
		installOptionalKinds()
	})
	known := readCorpus()
	for i, e := range known.Edits {
		It(fmt.Sprintf("of the %s of %s by another manager is reverted or left alone: %s", e.Child, e.Of, e.Name), func(ctx context.Context) {
			sinceServed(e.Of, refusedFields)
			e.try(ctx, i%2 == 1)
		})
	}
	for _, c := range known.Changes {
		It(fmt.Sprintf("of the spec of %s has the children of a new object: %s", c.Of, c.Patch), func(ctx context.Context) {
			sinceServed(c.Of, refusedFields)
			Expect(c.try(ctx)).To(BeTrue(), "refused")
		})
	}
	if thoroughly {
		drawnEdits()
	}
})
