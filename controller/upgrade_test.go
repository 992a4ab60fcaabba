// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	gocmp "github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// recorded is what an older version stored for one manifest: see testdata/README.md.
type recorded struct {
	// name is the name of the file.
	name string
	// manifest is what a client sent, with the name that the object got.
	manifest string
	// owner is the object, children are its Deployment or DaemonSet, and its Service if there is one.
	owner    *unstructured.Unstructured
	children []*unstructured.Unstructured
}

// versions returns the folders of testdata with what older versions stored.
func versions() []string {
	folders, err := filepath.Glob("testdata/v*")
	if err != nil || len(folders) == 0 {
		panic(fmt.Sprint("nothing was recorded: ", err))
	}
	return folders
}

// readRecorded returns what is recorded in a folder.
func readRecorded(folder string) []*recorded {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	all := make([]*recorded, 0, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		documents := strings.Split(string(text), "\n---\n")
		r := &recorded{name: strings.TrimSuffix(filepath.Base(file), ".yaml"), owner: decoded(documents[1])}
		for _, document := range documents[2:] {
			r.children = append(r.children, decoded(document))
		}
		manifest := decoded(documents[0])
		manifest.SetName(r.owner.GetName())
		manifest.SetNamespace(r.owner.GetNamespace())
		manifest.SetGenerateName("")
		encoded, err := manifest.MarshalJSON()
		Expect(err).NotTo(HaveOccurred())
		r.manifest = string(encoded)
		all = append(all, r)
	}
	return all
}

func decoded(document string) *unstructured.Unstructured {
	GinkgoHelper()
	text, err := yaml.YAMLToJSON([]byte(document))
	Expect(err).NotTo(HaveOccurred())
	obj := &unstructured.Unstructured{}
	Expect(obj.UnmarshalJSON(text)).To(Succeed())
	return obj
}

// pods returns the child that has pods.
func (r *recorded) pods() *unstructured.Unstructured { return r.children[0] }

// isPaused reports whether changes waited when the object was recorded.
func (r *recorded) isPaused() bool { return nested(r.owner, "spec", "paused") == true }

// has reports whether the spec of the recorded object has a field.
func (r *recorded) has(fields ...string) bool {
	return nested(r.owner, append([]string{"spec"}, fields...)...) != nil
}

// nested returns the value of a field, nil if there is none.
func nested(obj *unstructured.Unstructured, fields ...string) any {
	GinkgoHelper()
	value, _, err := unstructured.NestedFieldNoCopy(obj.Object, fields...)
	Expect(err).NotTo(HaveOccurred())
	return value
}

// template returns the pod template of an object as the API server has it.
func template(ctx context.Context, obj *unstructured.Unstructured) string {
	GinkgoHelper()
	return encodedTemplate(stored(ctx, obj))
}

// stored reads an object from the API server.
func stored(ctx context.Context, obj client.Object) *unstructured.Unstructured {
	GinkgoHelper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	live.SetName(obj.GetName())
	live.SetNamespace(obj.GetNamespace())
	return untimed(get(ctx, live))
}

// untimed removes the time at which a pod template was created, which is null, and which an API server
// before 1.34 has in its answers.
func untimed(obj *unstructured.Unstructured) *unstructured.Unstructured {
	unstructured.RemoveNestedField(obj.Object, "spec", "template", "metadata", "creationTimestamp")
	return obj
}

// store writes what is recorded to etcd, and waits until the API server serves it, so that a
// controller that lists from its cache gets nothing older.
func store(ctx context.Context, all []*recorded) {
	GinkgoHelper()
	each(all, func(r *recorded) {
		for _, obj := range append(slices.Clone(r.children), r.owner) {
			version, err := env.Store(ctx, obj)
			Expect(err).NotTo(HaveOccurred())
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(obj.GroupVersionKind())
			Eventually(func() (string, error) {
				fromCache := &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}}
				err := env.Client.Get(ctx, client.ObjectKeyFromObject(obj), live, fromCache)
				return live.GetResourceVersion(), err
			}).Should(Equal(version))
			Expect(equality.Semantic.DeepEqual(untimed(live).Object["spec"], obj.Object["spec"])).To(BeTrue(),
				"%s %s: a newer schema has a default that the object does not have", obj.GetKind(), obj.GetName())
		}
	})
}

// settled waits until the controller of this version has reconciled the current generation of
// an object: versions before it did not write the condition Available.
func settled(ctx context.Context, owner *unstructured.Unstructured) {
	GinkgoHelper()
	Eventually(func() string {
		live := stored(ctx, owner)
		conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
		if !slices.ContainsFunc(conditions, func(c any) bool { return c.(map[string]any)["type"] == "Available" }) {
			return "not reconciled by this version"
		}
		if nested(live, "status", "observedGeneration") != live.GetGeneration() {
			return "generation not reconciled"
		}
		return ""
	}).Should(BeEmpty(), owner.GetName())
}

// patched writes a JSON merge patch of an object.
func patched(ctx context.Context, obj *unstructured.Unstructured, format string, args ...any) {
	GinkgoHelper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...))
	Expect(env.Client.Patch(ctx, obj.DeepCopy(), patch, otherManager)).To(Succeed(), obj.GetName())
}

// portPatched writes a field of the first port of an object.
func portPatched(ctx context.Context, obj *unstructured.Unstructured, fieldName string, value any) {
	GinkgoHelper()
	body := asJSON([]tree{{"op": "add", "path": "/spec/ports/0/" + fieldName, "value": value}})
	Expect(env.Client.Patch(ctx, obj.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(body)), otherManager)).To(Succeed(), obj.GetName())
}

// some does the same for all recorded objects, for a few at the same time, because kubectl takes much CPU.
func some(all []*recorded, do func(*recorded)) {
	GinkgoHelper()
	for few := range slices.Chunk(all, 6) {
		each(few, do)
	}
}

// storedEdit is a change that must restart no pod of an object that an older version stored.
type storedEdit struct {
	name string
	// of reports whether the edit is one of the object.
	of func(*recorded) bool
	// do writes it.
	do func(ctx context.Context, r *recorded)
	// effect checks that the edit reached the children; it may be nil.
	effect func(ctx context.Context, r *recorded)
}

func everyObject(*recorded) bool { return true }

func scalable(r *recorded) bool { return r.owner.GetKind() != "Genericdaemon" }

func scaledTo(replicas int64) func(context.Context, *recorded) {
	return func(ctx context.Context, r *recorded) {
		GinkgoHelper()
		if !r.isPaused() {
			Expect(nested(stored(ctx, r.pods()), "spec", "replicas")).To(Equal(replicas), r.name)
		}
	}
}

// nodePorts is the last node port that a Service of a spec has.
var nodePorts atomic.Int64

var storedEdits = []storedEdit{
	{"a label", everyObject, func(ctx context.Context, r *recorded) {
		patched(ctx, r.owner, `{"metadata":{"labels":{"upgraded":"yes"}}}`)
	}, nil},
	{"an annotation", everyObject, func(ctx context.Context, r *recorded) {
		patched(ctx, r.owner, `{"metadata":{"annotations":{"upgraded":"yes"}}}`)
	}, nil},
	{"/scale", scalable, func(ctx context.Context, r *recorded) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":6}}`))
		Expect(env.Client.SubResource("scale").Patch(ctx, r.owner.DeepCopy(), patch)).To(Succeed())
	}, scaledTo(6)},
	{"spec.replicas", scalable, func(ctx context.Context, r *recorded) { patched(ctx, r.owner, `{"spec":{"replicas":7}}`) }, scaledTo(7)},
	{"spec.rollingUpdate", func(r *recorded) bool { return r.owner.GetKind() != "App" }, func(ctx context.Context, r *recorded) {
		patched(ctx, r.owner, `{"spec":{"rollingUpdate":"40%%"}}`)
	}, nil},
	{"pause", func(r *recorded) bool { return !r.isPaused() }, func(ctx context.Context, r *recorded) {
		patched(ctx, r.owner, `{"spec":{"paused":true}}`)
		settled(ctx, r.owner)
		patched(ctx, r.owner, `{"spec":{"paused":false}}`)
	}, nil},
	{"serviceType", func(r *recorded) bool { return r.owner.GetKind() == "ModelBox" }, func(ctx context.Context, r *recorded) {
		patched(ctx, r.owner, `{"spec":{"serviceType":"NodePort"}}`)
	}, func(ctx context.Context, r *recorded) {
		if r.has("ports") && !r.isPaused() {
			Expect(nested(stored(ctx, r.children[1]), "spec", "type")).To(Equal("NodePort"))
		}
	}},
	{"nodePort", func(r *recorded) bool { return r.has("ports") }, func(ctx context.Context, r *recorded) {
		portPatched(ctx, r.owner, "nodePort", 31500+nodePorts.Add(1))
	}, nil},
	{"appProtocol", func(r *recorded) bool { return r.has("ports") }, func(ctx context.Context, r *recorded) {
		portPatched(ctx, r.owner, "appProtocol", "kubernetes.io/h2c")
	}, nil},
	{"the port of the Service", func(r *recorded) bool {
		// The container port stays.
		return slices.Contains([]string{"modelbox-pod-template", "modelbox-explicit-probes", "app-users"}, r.name)
	}, func(ctx context.Context, r *recorded) { portPatched(ctx, r.owner, "port", 8999) }, func(ctx context.Context, r *recorded) {
		ports := nested(stored(ctx, r.children[1]), "spec", "ports").([]any)
		Expect(ports[0].(map[string]any)["port"]).To(BeEquivalentTo(8999), r.name)
	}},
	{"a client-side apply of the same manifest", everyObject, func(_ context.Context, r *recorded) {
		_, err := env.Kubectl(r.manifest, "apply", "--filename", "-")
		Expect(err).NotTo(HaveOccurred())
	}, nil},
	{"a server-side apply of the same manifest", everyObject, func(_ context.Context, r *recorded) {
		_, err := env.Kubectl(r.manifest, "apply", "--server-side", "--force-conflicts", "--filename", "-")
		Expect(err).NotTo(HaveOccurred())
	}, nil},
}

var _ = Describe("an upgrade", long, func() {
	for _, folder := range versions() {
		version := filepath.Base(folder)
		Context("from "+version, Ordered, ContinueOnFailure, func() {
			var (
				all       []*recorded
				namespace string
				mark      int
			)
			BeforeAll(func(ctx context.Context) {
				all = readRecorded(folder)
				namespace = all[0].owner.GetNamespace()
				Expect(env.Kubectl("", "create", "namespace", namespace)).NotTo(BeEmpty())
				DeferCleanup(installWebhooks(ctx, namespace))
				DeferCleanup(removeAll, namespace)
			})
			// Each spec begins with what the older version stored, and the start of this one.
			BeforeEach(func(ctx context.Context) {
				stop()
				store(ctx, all)
				_, mark = writes(namespace, 0)
				start()
				each(all, func(r *recorded) { settled(ctx, r.owner) })
			})
			unchanged := func(ctx context.Context, r *recorded) {
				GinkgoHelper()
				Expect(template(ctx, r.pods())).To(MatchJSON(encodedTemplate(r.pods())), r.name)
			}

			It("changes nothing in the spec of a child when the new version starts", func(ctx context.Context) {
				for _, r := range all {
					for _, child := range r.children {
						live := stored(ctx, child)
						Expect(gocmp.Diff(child.Object["spec"], live.Object["spec"])).To(BeEmpty(), r.name)
						if !r.isPaused() { // These writes are paced.
							Eventually(func() map[string]string { return stored(ctx, child).GetAnnotations() }).ShouldNot(
								HaveKey("model.github.com/desired-hash"), r.name)
						}
					}
				}
				// Status has now what was written, so another start writes nothing.
				count, next := writes(namespace, mark)
				Expect(count).NotTo(BeEmpty())
				stop()
				start()
				each(all, func(r *recorded) { settled(ctx, r.owner) })
				count, _ = writes(namespace, next)
				for verb := range count {
					Expect(verb).To(Or(HavePrefix("list "), HaveSuffix("/status 200")), describe(count))
				}
			})

			for i, e := range storedEdits {
				if !thoroughly && (int64(i)+GinkgoRandomSeed())%4 != 0 {
					continue // A quarter, another one with each seed. The next spec has all of them.
				}
				It("restarts no pod when the first edit is: "+e.name, func(ctx context.Context) {
					tried := slices.DeleteFunc(slices.Clone(all), func(r *recorded) bool { return !e.of(r) })
					Expect(len(tried)).To(BeNumerically(">", 2))
					some(tried, func(r *recorded) { e.do(ctx, r) })
					each(all, func(r *recorded) {
						settled(ctx, r.owner)
						unchanged(ctx, r)
						if e.of(r) && e.effect != nil {
							e.effect(ctx, r)
						}
					})
				})
			}

			It("restarts no pod by all edits, one after the other", func(ctx context.Context) {
				some(all, func(r *recorded) {
					for _, e := range storedEdits {
						if !e.of(r) || e.name == "the port of the Service" {
							continue // Another port beside the one of the manifest that is applied later.
						}
						e.do(ctx, r)
						settled(ctx, r.owner)
						unchanged(ctx, r)
					}
				})
			})

			It("writes only what waited when a paused object continues", func(ctx context.Context) {
				paused := slices.IndexFunc(all, (*recorded).isPaused)
				Expect(paused).NotTo(Equal(-1))
				r := all[paused]
				patched(ctx, r.owner, `{"spec":{"paused":false}}`)
				settled(ctx, r.owner)
				want := r.pods().DeepCopy()
				setImage(want, nested(r.owner, "spec", "image"))
				Expect(template(ctx, want)).To(MatchJSON(encodedTemplate(want)))
			})

			It("creates a deleted child again with its old template", func(ctx context.Context) {
				for _, r := range all {
					for _, child := range r.children {
						Expect(env.Client.Delete(ctx, child.DeepCopy())).To(Succeed())
					}
				}
				for _, r := range all {
					if r.isPaused() {
						continue
					}
					for _, child := range r.children {
						Eventually(func() (types.UID, error) {
							live := child.DeepCopy()
							err := env.Client.Get(ctx, client.ObjectKeyFromObject(child), live)
							return live.GetUID(), err
						}).ShouldNot(Or(BeEmpty(), Equal(child.GetUID())))
					}
					want := r.pods().DeepCopy()
					removeForeign(want)
					Expect(template(ctx, want)).To(MatchJSON(encodedTemplate(want)), r.name)
				}
			})

			It("has the newer defaults once another field of the pod template changes", func(ctx context.Context) {
				each(all, func(r *recorded) {
					patched(ctx, r.owner, `{"spec":{"image":"registry.example.com/new:1"}}`)
					settled(ctx, r.owner)
					if r.isPaused() {
						return
					}
					want := r.pods().DeepCopy()
					// The first apply by this version has made the pull policy one that no manager owns, which stays.
					policy := mainContainer(want)["imagePullPolicy"]
					setImage(want, "registry.example.com/new:1")
					mainContainer(want)["imagePullPolicy"] = policy
					setNewerDefaults(ctx, r, want)
					Expect(template(ctx, want)).To(MatchJSON(encodedTemplate(want)), r.name)
				})
			})
		})
	}
})

// encodedTemplate returns the pod template of an object in memory.
func encodedTemplate(obj *unstructured.Unstructured) string {
	GinkgoHelper()
	return asJSON(nested(obj, "spec", "template"))
}

// mainContainer returns the container that the operator generated.
func mainContainer(child *unstructured.Unstructured) map[string]any {
	GinkgoHelper()
	containers := nested(child, "spec", "template", "spec", "containers").([]any)
	i := slices.IndexFunc(containers, func(c any) bool { return !slices.Contains([]any{"mesh", "side"}, c.(map[string]any)["name"]) })
	return containers[i].(map[string]any)
}

func setImage(child *unstructured.Unstructured, image any) {
	GinkgoHelper()
	main := mainContainer(child)
	if main["imagePullPolicy"] == "Always" && !hasOwnPullPolicy(child) {
		main["imagePullPolicy"] = "IfNotPresent" // The API server's default for an image with a tag.
	}
	main["image"] = image
}

// hasOwnPullPolicy reports whether the pull policy is not the API server's default.
func hasOwnPullPolicy(child *unstructured.Unstructured) bool {
	return slices.Contains([]string{"pod-template", "app-pod-template"}, child.GetName())
}

// removeForeign removes what other field managers added to the pod template, which is lost with
// the child.
func removeForeign(child *unstructured.Unstructured) {
	GinkgoHelper()
	containers := nested(child, "spec", "template", "spec", "containers").([]any)
	containers = slices.DeleteFunc(containers, func(c any) bool { return c.(map[string]any)["name"] == "mesh" })
	Expect(unstructured.SetNestedSlice(child.Object, containers, "spec", "template", "spec", "containers")).To(Succeed())
	if child.GetName() == "restarted" {
		unstructured.RemoveNestedField(child.Object, "spec", "template", "metadata", "annotations")
	}
}

// setNewerDefaults sets the defaults that v0.1.0 did not have, and checks those of the object.
func setNewerDefaults(ctx context.Context, r *recorded, child *unstructured.Unstructured) {
	GinkgoHelper()
	if r.owner.GetKind() != "ModelBox" {
		return
	}
	owner, main := stored(ctx, r.owner), mainContainer(child)
	Expect(nested(owner, "spec", "progressDeadlineSeconds")).NotTo(BeNil(), r.name)
	liveness, _ := main["livenessProbe"].(map[string]any)
	if main["startupProbe"] != nil || liveness["tcpSocket"] == nil {
		return
	}
	Expect(nested(owner, "spec", "startupProbe")).NotTo(BeNil(), r.name)
	main["startupProbe"] = map[string]any{
		"tcpSocket": liveness["tcpSocket"], "periodSeconds": int64(2), "failureThreshold": int64(900),
		"successThreshold": int64(1), "timeoutSeconds": int64(1),
	}
}
