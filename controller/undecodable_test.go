// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/kinds/all"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/test/extremes"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

var _ = Describe("stored objects that cannot be decoded", long, func() {
	It("stop no other object, of any kind, and cost nothing at rest", func() {
		ctx, namespace := context.Background(), newNamespace()
		DeferCleanup(removeAll, namespace)
		count, seed := 16, uint64(1) // Hostile objects of each kind.
		if thoroughly {
			count, seed = 2000, uint64(GinkgoRandomSeed())
		}
		var all []*hostiles
		good := map[string][]status.Object{}
		for _, kind := range slices.Sorted(maps.Keys(guarantees)) {
			all = append(all, &hostiles{crd: newCRD(kind), namespace: namespace, source: extremes.New(seed)})
			good[kind] = goodOnes(ctx, guarantees[kind], namespace, kind)
		}
		storeBoth(ctx, all, count)
		storeDrawn(ctx, namespace, count, seed)
		// They are reconciled after the objects that were stored before their changes.
		within := 20*time.Second + time.Duration(count)*100*time.Millisecond
		converge := func(when string) {
			GinkgoHelper()
			for kind, objects := range good {
				for _, obj := range objects {
					change(ctx, obj, guarantees[kind].edit)
				}
			}
			for _, objects := range good {
				for _, obj := range objects {
					Eventually(readiness(ctx, obj)).WithTimeout(within).
						ShouldNot(Or(Equal("not seen"), ContainSubstring("InvalidSpec")), "%s: %s", when, obj.GetName())
				}
			}
		}
		converge("before a restart")
		atRestBeside(namespace, count*len(all))
		stop()
		start()
		converge("after a restart")
		rollOutAll(ctx, namespace)
		atRestBeside(namespace, count*len(all))
		for _, h := range all {
			h.account(ctx)
		}
	})
})

// removeAll removes the objects of all kinds from a namespace, and their children: clients
// of other specs could not decode the objects either, and the Services keep node ports.
func removeAll(ctx context.Context, namespace string) {
	GinkgoHelper()
	kinds := []client.Object{&appsv1.Deployment{}, &appsv1.DaemonSet{}, &autoscalingv2.HorizontalPodAutoscaler{}, &policyv1.PodDisruptionBudget{}}
	for _, kind := range all.Kinds {
		kinds = append(kinds, kind.New())
	}
	for _, kind := range kinds {
		Expect(env.Client.DeleteAllOf(ctx, kind, client.InNamespace(namespace))).To(Succeed())
	}
	services := &corev1.ServiceList{}
	Eventually(func() ([]corev1.Service, error) {
		if err := env.Client.DeleteAllOf(ctx, &corev1.Service{}, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		err := env.Client.List(ctx, services, client.InNamespace(namespace))
		return services.Items, err
	}).WithTimeout(2 * time.Minute).Should(BeEmpty())
}

// unstorable are values that Go cannot decode, or only at great cost, by the kind and
// the path of the field. There is no webhook here: the schemas refuse them.
var unstorable = map[string]map[string][]string{
	"ModelBox": {
		`{"image":"a","resources":{"limits":{"cpu":%s}}}`:                                                             quantities,
		`{"image":"a","resources":{"requests":{"cpu":%s}}}`:                                                           quantities,
		`{"image":"a","envs":[{"name":"A","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":%s}}}]}`: quantities,
		`{"image":"a","readinessProbe":{"tcpSocket":{"port":%s}}}`:                                                    ports,
		`{"image":"a","livenessProbe":{"httpGet":{"port":%s}}}`:                                                       ports,
		`{"image":"a","startupProbe":{"grpc":{"port":%s}}}`:                                                           ports,
		`{"image":"a","ports":[{"port":1,"targetPort":%s}]}`:                                                          ports,
		`{"image":"a","readinessProbe":{"periodSeconds":%s}}`:                                                         oddIntegers,
		`{"image":"a","livenessProbe":{"terminationGracePeriodSeconds":%s}}`:                                          {`1e19`, `9223372036854775807`, `-1`, `1.5`},
		`{"image":"a","replicas":%s}`:                                                                                 oddIntegers,
		`{"image":"a","rollingUpdate":%s}`:                                                                            {`3000000000`, `1e19`, `0`, `-1`, `1.5`},
	},
	"App":              {`{"image":"a","resources":{"limits":{"cpu":%s}}}`: quantities, `{"image":"a","replicas":%s}`: oddIntegers, `{"image":"a","schedules":[{"name":"a","schedule":"@daily","replicas":%s}]}`: oddIntegers},
	"Genericdaemon":    {`{"image":"a","resources":{"limits":{"cpu":%s}}}`: quantities},
	"UnitedDeployment": {`{"deploymentName":"a","replicas":%s}`: oddIntegers},
	"Eru": {`{"historyLimit":%s}`: oddIntegers, `{"jitterSeconds":%s}`: oddIntegers, `{"startingDeadlineSeconds":%s}`: oddIntegers,
		`{"windows":[{"schedule":"@daily","duration":%s}]}`: {`"1"`, `""`, `"h"`, `"1.5h"`, `"-1h"`, `"30s"`, `"169h"`, `"99999h99999m99999s"`, `3600`, `"1h "`}},
}

var (
	quantities = []string{
		`"1e.5"`, `"1e1.5"`, `"1e99999999999999999999"`, `"1e999999999"`, `"1e-999999999"`, `"1e100"`, `"-1"`, `"x"`, `""`, `-1`, `1e19`, `1.5`, `true`,
		`"` + strings.Repeat("9", 33) + `"`,
	}
	ports       = []string{`3000000000`, `65536`, `0`, `-1`, `1e19`, `1.5`, `"a-name-of-sixteen"`}
	oddIntegers = []string{`3000000000`, `2147483648`, `-1`, `1e19`, `1.5`, `"1"`}
)

var _ = Describe("a value that cannot be decoded", func() {
	ctx := context.Background()
	for kind, specs := range unstorable {
		It("is refused by the schema: "+kind, func() {
			namespace, crd := newNamespace(), newCRD(kind)
			for spec, values := range specs {
				for _, value := range values {
					obj := &unstructured.Unstructured{}
					document := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"a","namespace":%q},"spec":%s}`,
						crd.kind().GroupVersion(), kind, namespace, fmt.Sprintf(spec, value))
					Expect(obj.UnmarshalJSON([]byte(document))).To(Succeed())
					err := env.Client.Create(ctx, obj)
					Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%s: %v", document, err)
				}
			}
		})
	}

	It("is refused in status: a time that is not written in UTC", func() {
		eru := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
		eru.SetGroupVersionKind(newCRD("Eru").kind())
		eru.SetNamespace(newNamespace())
		DeferCleanup(removeAll, eru.GetNamespace())
		eru.SetName("a")
		Expect(env.Client.Create(ctx, eru)).To(Succeed())
		set := func(instant string) error {
			patch := fmt.Appendf(nil, `{"status":{"lastScheduleTime":%q}}`, instant)
			return env.Client.Status().Patch(ctx, eru, client.RawPatch("application/merge-patch+json", patch))
		}
		for _, instant := range []string{"9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00", "2026-02-30T00:00:00Z", "2026-01-02T03:04:05.5Z", "x"} {
			Expect(apierrors.IsInvalid(set(instant))).To(BeTrue(), instant)
		}
		Expect(set("9999-12-31T23:59:59Z")).To(Succeed())
	})
})

// storeBoth stores, of each kind, objects that the schema admits and objects that it
// does not admit.
func storeBoth(ctx context.Context, all []*hostiles, count int) {
	GinkgoHelper()
	for _, h := range all {
		DeferCleanup(func() { h.crd.restore(ctx) })
	}
	each(all, func(h *hostiles) {
		h.store(ctx, count/2, nil)
		h.crd.loosen(ctx)
		Eventually(h.crd.accepts(ctx)).Should(BeTrue())
		h.store(ctx, count-count/2, extremes.Nasty())
		h.crd.restore(ctx)
		Expect(h.stored.Load()).To(BeNumerically(">", count/4), "too few were stored")
	})
}

// storeDrawn stores objects of the golden files of which up to three fields have other values, so that most of their spec is in effect.
func storeDrawn(ctx context.Context, namespace string, count int, seed uint64) {
	GinkgoHelper()
	d, stored := newEditDrawer(), 0
	d.Rand, d.odd = rand.New(rand.NewPCG(seed, 0)), oddities
	for i := range 2 * count {
		document, manifest := ownerManifests[d.owner()], tree{}
		Expect(json.Unmarshal(document, &manifest)).To(Succeed())
		for range 1 + d.IntN(3) {
			patch, err := jsonpatch.DecodePatch(d.edit(d.below(spot{path: "/spec", value: manifest["spec"]})))
			Expect(err).NotTo(HaveOccurred())
			document, err = patch.Apply(document)
			Expect(err).NotTo(HaveOccurred())
			manifest = nil
			Expect(json.Unmarshal(document, &manifest)).To(Succeed())
			if len(manifest["spec"].(tree)) == 0 {
				break
			}
		}
		obj := &unstructured.Unstructured{Object: manifest}
		obj.Object["metadata"] = tree{"namespace": namespace, "name": fmt.Sprintf("hostile-drawn-%d", i)}
		if env.Client.Create(ctx, obj) == nil {
			stored++
		}
	}
	Expect(stored).To(BeNumerically(">", count/2), "too few were stored")
}

// goodOnes returns objects of a kind with valid specs.
func goodOnes(ctx context.Context, g guarantee, namespace, kind string) []status.Object {
	GinkgoHelper()
	good := make([]status.Object, 4)
	for i := range good {
		named := metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%d", strings.ToLower(kind), i)}
		if g.before != nil {
			g.before(ctx, named)
		}
		good[i] = g.object(named)
		Expect(env.Client.Create(ctx, good[i])).To(Succeed())
	}
	return good
}

// rollOutAll completes the rollouts of all children in a namespace, so that the spec alone keeps an object from being ready.
func rollOutAll(ctx context.Context, namespace string) {
	GinkgoHelper()
	deployments, sets := &appsv1.DeploymentList{}, &appsv1.DaemonSetList{}
	Expect(env.Client.List(ctx, deployments, client.InNamespace(namespace))).To(Succeed())
	for i := range deployments.Items {
		rollOut(ctx, deployments.Items[i].ObjectMeta)
	}
	Expect(env.Client.List(ctx, sets, client.InNamespace(namespace))).To(Succeed())
	for i := range sets.Items {
		writeDaemonStatus(ctx, sets.Items[i].ObjectMeta, func(*appsv1.DaemonSet) {})
	}
}

func kindOf(obj client.Object) string {
	gvk, err := env.Client.GroupVersionKindFor(obj)
	Expect(err).NotTo(HaveOccurred())
	return gvk.Kind
}

// atRestBeside waits until the controller writes nothing in a namespace for a second, and uses
// little CPU meanwhile. A status that the API server refuses is retried with back-off, in the end every two
// minutes, so that thousands of hostile objects are never silent together.
func atRestBeside(namespace string, hostile int) {
	GinkgoHelper()
	var mark int
	most := 0
	if thoroughly {
		most = hostile / 100
	}
	Eventually(func(g Gomega) {
		_, mark = writes(namespace, 0)
		before, since := cpu(), time.Now()
		var count map[string]int
		g.Consistently(func() (requests int) {
			count, _ = writes(namespace, mark)
			for _, n := range count {
				requests += n
			}
			return requests
		}, time.Second, 100*time.Millisecond).Should(BeNumerically("<=", most), func() string { return describe(count) })
		g.Expect(cpu()-before).To(BeNumerically("<", time.Since(since)/2), "CPU at rest")
	}, 2*time.Minute).Should(Succeed())
}

// cpu returns the time of a processor that this process has used.
func cpu() time.Duration {
	GinkgoHelper()
	var usage syscall.Rusage
	Expect(syscall.Getrusage(syscall.RUSAGE_SELF, &usage)).To(Succeed())
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// hostiles stores hostile objects of a kind.
type hostiles struct {
	crd             *testCRD
	namespace       string
	source          *extremes.Source
	made            int
	stored, refused atomic.Int64
}

// store stores objects that the schema admits, with some other values if there are any.
func (h *hostiles) store(ctx context.Context, count int, by []any) {
	GinkgoHelper()
	var objects []*unstructured.Unstructured
	for range count {
		objects = append(objects, h.object(by))
	}
	each(slices.Collect(slices.Chunk(objects, count/8+1)), func(some []*unstructured.Unstructured) {
		for _, obj := range some {
			h.storeOne(ctx, obj)
		}
	})
}

func (h *hostiles) object(by []any) *unstructured.Unstructured {
	h.made++
	root := h.crd.strict.Spec.Versions[0].Schema.OpenAPIV3Schema
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	for _, part := range []string{"spec", "status"} {
		schema := root.Properties[part]
		value := h.source.Value(&schema).(map[string]any)
		if by != nil {
			h.source.Spoil(value, by)
		}
		obj.Object[part] = value
	}
	obj.SetGroupVersionKind(h.crd.kind())
	obj.SetNamespace(h.namespace)
	obj.SetName(fmt.Sprintf("hostile-%d", h.made))
	return obj
}

// storeOne stores an object, then its status. The API server refuses some, and some
// parts of them.
func (h *hostiles) storeOne(ctx context.Context, obj *unstructured.Unstructured) {
	said, err := json.Marshal(map[string]any{"status": obj.Object["status"]})
	if err == nil {
		delete(obj.Object, "status")
		err = env.Client.Create(ctx, obj)
	}
	if err != nil {
		h.refused.Add(1)
		return
	}
	h.stored.Add(1)
	if env.Client.Status().Patch(ctx, obj, client.RawPatch("application/merge-patch+json", said)) != nil {
		h.refused.Add(1)
	}
}

// account reports the numbers of objects, and waits until each has a Ready condition of its
// generation, or is one whose status the API server refuses whatever it says: the API server
// judges an unchanged spec again if a list in it has a key twice, or a rule cannot read a value.
func (h *hostiles) account(ctx context.Context) {
	GinkgoHelper()
	c, err := client.New(asController, client.Options{})
	Expect(err).NotTo(HaveOccurred())
	list := &unstructured.UnstructuredList{}
	gvk := h.crd.kind()
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	Expect(env.Client.List(ctx, list, client.InNamespace(h.namespace))).To(Succeed())
	reported := map[string]int{}
	replace := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/status","value":{"observedGeneration":0}}]`))
	for i := range list.Items {
		obj := &list.Items[i]
		if !strings.HasPrefix(obj.GetName(), "hostile-") {
			Expect(c.Status().Patch(ctx, obj, replace, client.DryRunAll)).To(Succeed())
			continue
		}
		Eventually(func(g Gomega) {
			g.Expect(c.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
			g.Expect(readyOf(obj) != "none" || c.Status().Patch(ctx, obj.DeepCopy(), replace, client.DryRunAll) != nil).To(BeTrue(),
				"%s has no Ready condition, but the API server accepts a status", obj.GetName())
		}).Should(Succeed())
		if fields := ineffective(ctx, obj); len(fields) > 0 {
			Expect(readyOf(obj)).NotTo(Equal(status.ReasonReady), "%s: %v", obj.GetName(), fields)
		}
		reported[readyOf(obj)]++
	}
	AddReportEntry(fmt.Sprintf("%s: %d stored, %d refused, Ready: %v", gvk.Kind, h.stored.Load(), h.refused.Load(), reported))
	Expect(reported).To(HaveKey("InvalidSpec"))
}

// ineffective returns the errors of an object's fields that are not in effect under the rules of admission, none for one that
// cannot be decoded.
func ineffective(ctx context.Context, obj *unstructured.Unstructured) field.ErrorList {
	GinkgoHelper()
	kind := all.Of(obj.GroupVersionKind().GroupKind())
	typed := kind.New()
	if running.GetCache().Get(ctx, client.ObjectKeyFromObject(obj), typed) != nil {
		return nil
	}
	kind.SetDefaults(typed, nil)
	return rules.Ineffective(kind.Validate(typed))
}

// readyOf returns the reason of an object's Ready condition, if it is of its generation.
func readyOf(obj *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, in := range conditions {
		condition, _ := in.(tree)
		if condition["type"] == status.ConditionReady && condition["observedGeneration"] == obj.GetGeneration() {
			return fmt.Sprint(condition["reason"])
		}
	}
	return "none"
}

// testCRD is the installed CRD of a kind.
type testCRD struct {
	client client.Client
	strict *apiextensionsv1.CustomResourceDefinition
}

func newCRD(kind string) *testCRD {
	GinkgoHelper()
	scheme := runtime.NewScheme()
	Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	c, err := client.New(env.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	files, err := filepath.Glob(filepath.Join(testenv.Root(), "config", "crd", "bases", "*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		data, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		crd := &apiextensionsv1.CustomResourceDefinition{}
		Expect(yaml.Unmarshal(data, crd)).To(Succeed())
		if crd.Spec.Names.Kind == kind {
			return &testCRD{client: c, strict: crd}
		}
	}
	Fail("no CRD of the kind " + kind)
	return nil
}

func (c *testCRD) kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: c.strict.Spec.Group, Version: c.strict.Spec.Versions[0].Name, Kind: c.strict.Spec.Names.Kind}
}

// loosen lets the API server store anything in spec and status, as if an older release
// had stored it.
func (c *testCRD) loosen(ctx context.Context) {
	GinkgoHelper()
	anything := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	c.apply(ctx, &apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": anything, "status": anything},
	})
}

// restore installs the CRD of this release, and waits until it is in effect.
func (c *testCRD) restore(ctx context.Context) {
	GinkgoHelper()
	c.apply(ctx, c.strict.Spec.Versions[0].Schema.OpenAPIV3Schema)
	Eventually(c.accepts(ctx)).Should(BeFalse())
}

func (c *testCRD) apply(ctx context.Context, root *apiextensionsv1.JSONSchemaProps) {
	GinkgoHelper()
	Eventually(func() error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(c.strict), crd); err != nil {
			return err
		}
		if equality.Semantic.DeepEqual(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, root) {
			return nil
		}
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema = root
		return c.client.Update(ctx, crd)
	}).Should(Succeed())
}

// accepts tries, without storing it, whether an object that the strict schema refuses
// is accepted.
func (c *testCRD) accepts(ctx context.Context) func() bool {
	return func() bool {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"image": map[string]any{}, "deploymentName": map[string]any{}}}}
		obj.SetGroupVersionKind(c.kind())
		obj.SetNamespace("default")
		obj.SetName("trial")
		return env.Client.Create(ctx, obj, client.DryRunAll) == nil
	}
}

// deep is half of the nesting depth that JSON decoders accept. An object that is nested as deeply
// as the API server stores it, 9,993 levels, ends every list and watch of its kind, because these
// add levels (docs/troubleshooting.md has the command that removes it).
const deep = 5000

var _ = Describe("an object that is nested deeply", func() {
	It("stops no other object, in a watch and in a list", func(ctx context.Context) {
		namespace := newNamespace()
		DeferCleanup(removeAll, namespace)
		store := func(name string) {
			GinkgoHelper()
			body := fmt.Sprintf(`{"apiVersion":"model.github.com/v1","kind":"ModelBox","metadata":{"name":%q},"spec":{"image":"a:1","podTemplate":%s}}`,
				name, strings.Repeat(`{"a":`, deep)+"1"+strings.Repeat("}", deep))
			_, err := kubernetes.NewForConfigOrDie(env.Config).RESTClient().Post().
				AbsPath("/apis/model.github.com/v1/namespaces/" + namespace + "/modelboxes").Body([]byte(body)).DoRaw(ctx)
			Expect(err).NotTo(HaveOccurred())
		}
		good := func(name string) {
			GinkgoHelper()
			box := &modelv1.ModelBox{Spec: modelv1.ModelBoxSpec{Image: "a:1"}}
			box.Namespace, box.Name = namespace, name
			Expect(env.Client.Create(ctx, box)).To(Succeed())
			Eventually(readiness(ctx, box)).ShouldNot(Or(Equal("not seen"), ContainSubstring("InvalidSpec")))
		}
		store("deep-1")
		good("after-an-event")
		stop()
		store("deep-2")
		start()
		good("after-a-list")
	})
})
