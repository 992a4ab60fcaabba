// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
)

// guarantee has what the specs that are the same for all kinds need of one kind.
type guarantee struct {
	// object returns a valid object of the kind.
	object func(metav1.ObjectMeta) status.Object
	// before creates the target of the object, if it must exist.
	before func(ctx context.Context, named metav1.ObjectMeta)
	// after does what the cluster would do after the object was created.
	after func(ctx context.Context, named metav1.ObjectMeta)
	// edit changes the object's spec.
	edit func(status.Object)
	// children return foreign objects of the kinds of the children.
	children []func(metav1.ObjectMeta) client.Object
}

var guarantees = map[string]guarantee{
	"ModelBox": {
		object: func(named metav1.ObjectMeta) status.Object {
			return &modelv1.ModelBox{ObjectMeta: named, Spec: modelv1.ModelBoxSpec{Image: "nginx:1", Ports: []modelv1.Port{{Port: 80}}}}
		},
		after:    rollOut,
		edit:     func(obj status.Object) { obj.(*modelv1.ModelBox).Spec.Image += ".1" },
		children: []func(metav1.ObjectMeta) client.Object{foreignDeployment, labelled(foreignDeployment), foreignService},
	},
	"App": {
		object: func(named metav1.ObjectMeta) status.Object {
			return &appv1.App{ObjectMeta: named, Spec: appv1.AppSpec{Image: "nginx:1", Ports: []modelv1.Port{{Port: 80}}}}
		},
		after:    rollOut,
		edit:     func(obj status.Object) { obj.(*appv1.App).Spec.Image += ".1" },
		children: []func(metav1.ObjectMeta) client.Object{foreignDeployment, foreignService},
	},
	"Genericdaemon": {
		object: func(named metav1.ObjectMeta) status.Object {
			return &mydomainv1beta1.Genericdaemon{ObjectMeta: named, Spec: mydomainv1beta1.GenericdaemonSpec{Image: "syslog:1", Label: "logs"}}
		},
		after:    rollOutDaemon,
		edit:     func(obj status.Object) { obj.(*mydomainv1beta1.Genericdaemon).Spec.Image += ".1" },
		children: []func(metav1.ObjectMeta) client.Object{foreignDaemonSet},
	},
	"UnitedDeployment": {
		before: existing,
		object: func(named metav1.ObjectMeta) status.Object {
			return &extensionv1.UnitedDeployment{ObjectMeta: named, Spec: extensionv1.UnitedDeploymentSpec{DeploymentName: named.Name, Replicas: new(int32(3))}}
		},
		after: func(ctx context.Context, named metav1.ObjectMeta) {
			GinkgoHelper()
			want := get(ctx, &extensionv1.UnitedDeployment{ObjectMeta: named}).Spec.Replicas
			d := &appsv1.Deployment{ObjectMeta: named}
			Eventually(func() *int32 { return get(ctx, d).Spec.Replicas }).Should(Equal(want))
			rollOut(ctx, named)
		},
		edit: func(obj status.Object) { *obj.(*extensionv1.UnitedDeployment).Spec.Replicas++ },
	},
	"Eru": {
		before: func(ctx context.Context, named metav1.ObjectMeta) {
			existing(ctx, named)
			rollOut(ctx, named)
		},
		object: func(named metav1.ObjectMeta) status.Object {
			return &mtsrev1.Eru{ObjectMeta: named, Spec: mtsrev1.EruSpec{Enabled: true, Schedule: "0 0 1 1 *", HistoryLimit: new(int32(1))}}
		},
		after: func(context.Context, metav1.ObjectMeta) {},
		edit:  func(obj status.Object) { *obj.(*mtsrev1.Eru).Spec.HistoryLimit++ },
	},
}

// atRest returns a function that returns the writes in some namespaces since it was called, when there have been none for a
// moment: the API server writes its audit log after the object.
func atRest(namespaces ...string) func() []string {
	GinkgoHelper()
	var mark int
	written := func() (all []string) {
		for _, namespace := range namespaces {
			if count, _ := writes(namespace, mark); len(count) > 0 {
				all = append(all, namespace+": "+describe(count))
			}
		}
		return all
	}
	Eventually(func(g Gomega) {
		_, mark = writes("", 0)
		g.Consistently(written, 200*time.Millisecond).Should(BeEmpty())
	}).Should(Succeed())
	return written
}

// quiet waits until the controller is at rest in some namespaces, and expects no write for a second.
func quiet(namespaces ...string) {
	GinkgoHelper()
	Consistently(atRest(namespaces...), time.Second).Should(BeEmpty())
}

// quietAfterRestart restarts the controller when it is at rest, and expects no write for a second.
func quietAfterRestart(namespaces ...string) {
	GinkgoHelper()
	written := atRest(namespaces...)
	stop()
	start()
	Consistently(written, time.Second).Should(BeEmpty(), "after a restart")
}

var _ = Describe("every kind", func() {
	ctx := context.Background()
	all := maps.Clone(guarantees)
	maps.Copy(all, variants)
	kinds := slices.Sorted(maps.Keys(all))

	It("is silent at rest and after a restart", func() {
		const count = 5
		namespaces := map[string]string{}
		for _, kind := range kinds {
			namespaces[kind] = newNamespace()
		}
		haveOptionalKinds(namespaces["ModelBox with every block"])
		each(kinds, func(kind string) {
			g, objects := all[kind], make([]status.Object, count)
			for i := range objects {
				named := metav1.ObjectMeta{Namespace: namespaces[kind], Name: fmt.Sprintf("obj-%d", i)}
				if g.before != nil {
					g.before(ctx, named)
				}
				objects[i] = g.object(named)
				Expect(env.Client.Create(ctx, objects[i])).To(Succeed())
			}
			for _, obj := range objects {
				g.after(ctx, metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName()})
			}
			for _, obj := range objects {
				Eventually(readiness(ctx, obj)).Should(HavePrefix("True "), kind)
			}
		})
		written := atRest(slices.Collect(maps.Values(namespaces))...)
		Consistently(written, time.Second, 50*time.Millisecond).Should(BeEmpty(), "at rest")
		stop()
		start()
		Consistently(written, time.Second, 50*time.Millisecond).Should(BeEmpty(), "after a restart")
		for _, kind := range kinds {
			requests, _ := writes(namespaces[kind], 0)
			for request, n := range requests {
				if _, optional := variants[kind]; optional && strings.HasPrefix(request, "get ") {
					Expect(n).To(BeNumerically("<=", count), "%s: the cache of a kind that may be lost is late: %s", kind, request)
					continue
				}
				if strings.HasSuffix(request, " 201") || strings.HasSuffix(request, " 200") && !strings.Contains(request, "/status") {
					Expect(n).To(Equal(count), "%s: once for each object: %s", kind, request)
				}
			}
		}
	})

	It("never touches a foreign object of its name", func() {
		// conflict is an object, and a foreign one of the kind and the name of one of its children.
		type conflict struct {
			guarantee
			kind, about string
			obj         status.Object
			foreign     client.Object
		}
		var conflicts []*conflict
		var namespaces []string
		for _, kind := range kinds {
			for i, foreign := range all[kind].children {
				named := metav1.ObjectMeta{Namespace: newNamespace(), Name: "box"}
				namespaces = append(namespaces, named.Namespace)
				conflicts = append(conflicts, &conflict{all[kind], kind, fmt.Sprintf("%s, %d", kind, i+1), all[kind].object(named), foreign(named)})
			}
		}
		haveOptionalKinds(namespaces...)
		untouched := func(c *conflict) {
			GinkgoHelper()
			Eventually(readiness(ctx, c.obj)).Should(Equal("False NameConflict"), c.about)
			version := c.foreign.GetResourceVersion()
			Expect(get(ctx, c.foreign).GetResourceVersion()).To(Equal(version), c.about)
			if _, optional := variants[c.kind]; optional {
				Expect(exists(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: c.obj.GetNamespace(), Name: "box"}})()).To(BeTrue(), c.about)
				return
			}
			count, _ := writes(c.obj.GetNamespace(), 0)
			Expect(describe(count)).NotTo(Or(ContainSubstring("create "), MatchRegexp(`patch [a-z]+ `)),
				"%s: one conflict keeps all children as they are", c.about)
		}
		edited := func(c *conflict) {
			GinkgoHelper()
			change(ctx, c.obj, c.edit)
			untouched(c)
		}
		each(conflicts, func(c *conflict) {
			Expect(env.Client.Create(ctx, c.foreign)).To(Succeed())
			waitUntilCached(ctx, c.foreign)
			Expect(env.Client.Create(ctx, c.obj)).To(Succeed())
			untouched(c)
			Expect(meta.IsStatusConditionTrue(c.obj.GetConditions(), status.ConditionStalled)).To(BeTrue(), c.about)
			Eventually(func() string { return eventNote(ctx, c.obj, "NameConflict") }).Should(ContainSubstring("has no controller"), c.about)
			edited(c)
		})
		stop()
		start()
		each(conflicts, func(c *conflict) {
			edited(c)
			By("the foreign object is deleted, and the object is not changed: " + c.about)
			generation := c.obj.GetGeneration()
			Expect(env.Client.Delete(ctx, c.foreign)).To(Succeed())
			Eventually(readiness(ctx, c.obj)).Should(Equal("False Progressing"), c.about)
			c.after(ctx, metav1.ObjectMeta{Namespace: c.obj.GetNamespace(), Name: "box"})
			Eventually(readiness(ctx, c.obj)).Should(Equal("True Ready"), c.about)
			Expect(c.obj.GetGeneration()).To(Equal(generation), c.about)
		})
	})
})

// variants are further objects for which the guarantees hold.
var variants = map[string]guarantee{
	"ModelBox with every block": {
		object:   everyBlock,
		after:    rollOut,
		edit:     func(obj status.Object) { obj.(*modelv1.ModelBox).Spec.Image += ".1" },
		children: foreignBlocks(),
	},
}

// haveOptionalKinds installs the optional kinds until the spec ends. The controller is started again, because it asks for a kind
// once a minute, and the objects in these namespaces are deleted first, because it would create their children again.
func haveOptionalKinds(namespaces ...string) {
	GinkgoHelper()
	stop()
	installOptionalKinds()
	DeferCleanup(func(ctx context.Context) {
		for _, namespace := range namespaces {
			Expect(env.Client.DeleteAllOf(ctx, &modelv1.ModelBox{}, client.InNamespace(namespace))).To(Succeed())
		}
	})
	start()
	named := metav1.ObjectMeta{Namespace: newNamespace(), Name: "first"}
	first := everyBlock(named)
	Expect(env.Client.Create(context.Background(), first)).To(Succeed())
	Eventually(exists(context.Background(), podMonitor(named))).Should(BeTrue(), "the informers run")
	Expect(env.Client.Delete(context.Background(), first)).To(Succeed())
}

// everyBlock returns the ModelBox of a golden test that has every block.
func everyBlock(named metav1.ObjectMeta) status.Object {
	box := &modelv1.ModelBox{}
	if err := json.Unmarshal(ownerManifests["modelbox/children"], box); err != nil {
		panic(err) // It is a file of the repository.
	}
	box.ObjectMeta = named
	return box
}

// foreignBlocks return, for each block of everyBlock, its child without an owner.
func foreignBlocks() (all []func(metav1.ObjectMeta) client.Object) {
	for _, block := range children.Blocks {
		if blockChild(block, metav1.ObjectMeta{}) == nil {
			continue // Another block excludes it.
		}
		all = append(all, func(named metav1.ObjectMeta) client.Object {
			child := blockChild(block, named)
			child.SetOwnerReferences(nil)
			return child
		})
	}
	return all
}

func blockChild(block *children.Block, named metav1.ObjectMeta) client.Object {
	box := everyBlock(named).(*modelv1.ModelBox)
	modelbox.Default(box)
	all, err := modelbox.Workload(box, modelFetcher).Children()
	if err != nil {
		panic(err) // The golden test has built them.
	}
	for _, child := range all {
		if child.GetObjectKind().GroupVersionKind() == block.Kind {
			return child
		}
	}
	return nil
}

// existing creates a Deployment that the controller does not own.
func existing(ctx context.Context, named metav1.ObjectMeta) {
	GinkgoHelper()
	Expect(env.Client.Create(ctx, foreignDeployment(named))).To(Succeed())
}

func pods() (*metav1.LabelSelector, corev1.PodTemplateSpec) {
	labels := map[string]string{"foreign": "true"}
	return &metav1.LabelSelector{MatchLabels: labels}, corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "other:1"}}},
	}
}

func foreignDeployment(named metav1.ObjectMeta) client.Object {
	selector, template := pods()
	return &appsv1.Deployment{ObjectMeta: named, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}}
}

func foreignDaemonSet(named metav1.ObjectMeta) client.Object {
	selector, template := pods()
	return &appsv1.DaemonSet{ObjectMeta: named, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}}
}

func foreignService(named metav1.ObjectMeta) client.Object {
	return &corev1.Service{ObjectMeta: named, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}
}

// labelled returns a foreign object with the label of children. Only the owner reference makes
// an object a child.
func labelled(foreign func(metav1.ObjectMeta) client.Object) func(metav1.ObjectMeta) client.Object {
	return func(named metav1.ObjectMeta) client.Object {
		named.Labels = map[string]string{"app.kubernetes.io/managed-by": "modelbox-operator"}
		return foreign(named)
	}
}

// rollOutDaemon writes the status that the DaemonSet controller would write on a cluster with
// two matching nodes.
func rollOutDaemon(ctx context.Context, named metav1.ObjectMeta) {
	GinkgoHelper()
	writeDaemonStatus(ctx, named, func(*appsv1.DaemonSet) {})
}

func rolledOutOnTwoNodes(generation int64) appsv1.DaemonSetStatus {
	return appsv1.DaemonSetStatus{
		ObservedGeneration: generation, DesiredNumberScheduled: 2, CurrentNumberScheduled: 2,
		UpdatedNumberScheduled: 2, NumberReady: 2, NumberAvailable: 2,
	}
}

// eventNote returns the note of an event about an object with this reason.
func eventNote(ctx context.Context, obj client.Object, reason string) string {
	GinkgoHelper()
	if found := eventsOf(ctx, obj, reason); len(found) > 0 {
		return found[0].Note
	}
	return ""
}
