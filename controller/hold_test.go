// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// holding is an App with holdChanges: All whose window opens in an hour, and its Deployment.
type holding struct{ *drivenApp }

// drivenApp is an App that is reconciled by hand, and its Deployment.
type drivenApp struct {
	*driven
	ctx        context.Context
	app        *appv1.App
	deployment *appsv1.Deployment
}

func newHolding(ctx context.Context, more func(*appv1.App)) *holding {
	GinkgoHelper()
	named := metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}
	h := &holding{&drivenApp{drive(), ctx, &appv1.App{ObjectMeta: named, Spec: appv1.AppSpec{
		Image: "nginx:1", HoldChanges: modelv1.HoldChangesAll, Windows: windowAt(opens),
		Ports: []modelv1.Port{{Port: 80}},
	}}, &appsv1.Deployment{ObjectMeta: named}}}
	h.at(-time.Hour)
	more(h.app)
	Expect(env.Client.Create(ctx, h.app)).To(Succeed())
	h.once()
	rollOut(ctx, named)
	h.settled(ctx, h.app)
	Expect(readiness(ctx, h.app)()).To(Equal("True Ready"), "the first rollout of a new object does not wait")
	return h
}

// at sets the time to one relative to the begin of the window.
func (h *holding) at(offset time.Duration) {
	h.clock = clocktesting.NewFakePassiveClock(opens.Add(offset))
}

// once reconciles once, and returns after which time the object is reconciled again.
func (h *holding) once() time.Duration {
	GinkgoHelper()
	_, result, err := h.reconcile(h.ctx, h.app)
	Expect(err).NotTo(HaveOccurred())
	return result.RequeueAfter
}

func (h *drivenApp) edit(how func(*appv1.App)) {
	GinkgoHelper()
	change(h.ctx, h.app, how)
}

func (h *drivenApp) image() string {
	GinkgoHelper()
	return get(h.ctx, h.deployment).Spec.Template.Spec.Containers[0].Image
}

// records returns the records of the namespace.
func (h *drivenApp) records() []appsv1.ControllerRevision {
	GinkgoHelper()
	list := &appsv1.ControllerRevisionList{}
	Expect(env.Client.List(h.ctx, list, client.InNamespace(h.app.Namespace))).To(Succeed())
	return list.Items
}

// waits expects a wait for the window, which is at rest.
func (h *holding) waits(what string) {
	GinkgoHelper()
	rollOut(h.ctx, h.deployment.ObjectMeta) // The number of pods may have changed.
	h.once()
	Expect(readiness(h.ctx, h.app)()).To(Equal("False WaitingForWindow"))
	Expect(message(h.ctx, h.app)()).To(ContainSubstring("rollout of changed %s is on hold: next window opens at %s", what, opens.Format(time.RFC3339)))
	for range 2 {
		before := get(h.ctx, h.app).ResourceVersion
		h.write = func(func() error) error { return fmt.Errorf("a write at rest") }
		Expect(h.once()).To(And(BeNumerically(">", 0), BeNumerically("<=", opens.Sub(h.clock.Now()))))
		h.write = nil
		Expect(get(h.ctx, h.app).ResourceVersion).To(Equal(before))
	}
}

// done expects that nothing waits, and no record is left.
func (h *holding) done(image string, generation int64) {
	GinkgoHelper()
	Expect(h.image()).To(Equal(image))
	Expect(h.deployment.Generation).To(Equal(generation))
	rollOut(h.ctx, h.deployment.ObjectMeta)
	h.settled(h.ctx, h.app)
	Expect(readiness(h.ctx, h.app)()).To(Equal("True Ready"))
	Expect(h.records()).To(BeEmpty())
	Expect(h.app.Status.KeptTemplate).To(BeEmpty())
}

func asItIs(*appv1.App) {}

// startNow annotates the App for a generation that is some after the present one.
func (h *holding) startNow(after int64) {
	GinkgoHelper()
	h.edit(func(a *appv1.App) {
		a.Annotations = map[string]string{api.AnnotationRolloutNow: fmt.Sprint(a.Generation + after)}
	})
}

// afterAFreeze expects that the image nginx:2 is rolled out when a freeze ends in which the object was changed.
func (h *holding) afterAFreeze(edit func()) {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.app.Namespace}}
	change(h.ctx, namespace, func(n *corev1.Namespace) { n.Annotations = map[string]string{api.AnnotationFrozen: "x"} })
	edit()
	h.once()
	Expect(readiness(h.ctx, h.app)()).To(Equal("False Frozen"))
	Expect(h.image()).To(Equal("nginx:1"))
	change(h.ctx, namespace, func(n *corev1.Namespace) { n.Annotations = nil })
	h.once()
	h.done("nginx:2", 2)
}

func ofImage(image string) func(*appv1.App) { return func(a *appv1.App) { a.Spec.Image = image } }

var _ = Describe("holdChanges", Ordered, ContinueOnFailure, func() {
	BeforeAll(alone)

	const image = `containers[name="web"].image`

	It("keeps the pods until the window opens, applies all else at once, and is one rollout", func(ctx SpecContext) {
		h := newHolding(ctx, asItIs)
		h.edit(func(a *appv1.App) {
			a.Spec.Image, a.Spec.Replicas = "nginx:2", new(int32(3))
			a.Spec.ServiceMetadata = &modelv1.Metadata{Annotations: map[string]string{"a": "b"}}
		})
		h.once()
		h.waits(image)
		Expect(h.image()).To(Equal("nginx:1"))
		Expect(h.deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
		Expect(get(ctx, &corev1.Service{ObjectMeta: h.deployment.ObjectMeta}).Annotations).To(HaveKeyWithValue("a", "b"))
		Expect(h.records()).To(HaveLen(1))
		Expect(metav1.IsControlledBy(&h.records()[0], h.app)).To(BeTrue())

		By("changing it once more, and a Deployment that another client changes")
		h.edit(ofImage("nginx:3"))
		h.once()
		change(ctx, h.deployment, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "foreign:1" })
		h.again(ctx, h.app)
		Expect(h.image()).To(Equal("nginx:1"))
		h.waits(image)

		By("opening the window")
		generation := h.deployment.Generation
		h.at(0)
		h.once()
		h.done("nginx:3", generation+1)
		Expect(h.deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
	})

	It("is no rollout if the change is taken back", func(ctx SpecContext) {
		h := newHolding(ctx, asItIs)
		h.edit(ofImage("nginx:2"))
		h.once()
		h.waits(image)
		h.edit(ofImage("nginx:1"))
		h.once()
		h.done("nginx:1", 1)
	})

	It("rolls out at once without windows, and without the field, but not in a freeze", func(ctx SpecContext) {
		for name, end := range map[string]func(*appv1.App){
			"windows":     func(a *appv1.App) { a.Spec.Windows = modelv1.Windows{} },
			"holdChanges": func(a *appv1.App) { a.Spec.HoldChanges, a.Spec.Windows = "", modelv1.Windows{} },
		} {
			By("removing " + name)
			h := newHolding(ctx, asItIs)
			h.edit(ofImage("nginx:2"))
			h.once()
			h.waits(image)
			h.afterAFreeze(func() { h.edit(end) })
		}
	})

	It("rolls out now by the annotation of this generation alone, once, but not in a freeze", func(ctx SpecContext) {
		for name, waiting := range map[string]bool{"a change that waits": true, "a change that comes with it": false} {
			By(name)
			h := newHolding(ctx, asItIs)
			if waiting {
				h.edit(ofImage("nginx:2"))
				h.once()
				for _, after := range []int64{-1, 1} {
					h.startNow(after)
					h.once()
					h.waits(image)
				}
				Expect(message(ctx, h.app)()).To(HaveSuffix("; to start it now, use modelbox rollout now app/web"))
			}
			h.afterAFreeze(func() {
				if waiting {
					h.startNow(0)
				} else {
					h.startNow(1)
					h.edit(ofImage("nginx:2"))
				}
			})

			By("changing it again")
			h.edit(ofImage("nginx:3"))
			h.once()
			h.waits(image)
			Expect(h.image()).To(Equal("nginx:2"))
			h.at(0)
			h.once()
			h.done("nginx:3", 3)
		}
	})

	It("holds also the change that comes with the field", func(ctx SpecContext) {
		h := newHolding(ctx, func(a *appv1.App) { a.Spec.HoldChanges, a.Spec.Windows = "", modelv1.Windows{} })
		h.edit(func(a *appv1.App) {
			a.Spec.HoldChanges, a.Spec.Windows, a.Spec.Image, a.Spec.Replicas = modelv1.HoldChangesAll, windowAt(opens), "nginx:2", new(int32(2))
		})
		h.once()
		h.waits(image)
		Expect(h.image()).To(Equal("nginx:1"))
		Expect(h.deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
		h.at(0)
		h.once()
		h.done("nginx:2", 3)

		By("setting the field alone")
		h = newHolding(ctx, func(a *appv1.App) { a.Spec.HoldChanges, a.Spec.Windows = "", modelv1.Windows{} })
		h.edit(func(a *appv1.App) { a.Spec.HoldChanges, a.Spec.Windows = modelv1.HoldChangesAll, windowAt(opens) })
		h.once()
		h.done("nginx:1", 1)
	})

	It("keeps the Service with the ports of the pods", func(ctx SpecContext) {
		h := newHolding(ctx, asItIs)
		h.edit(func(a *appv1.App) { a.Spec.Ports[0].Port, a.Spec.Ports[0].Name = 8080, "" })
		h.once()
		Expect(readiness(ctx, h.app)()).To(Equal("False WaitingForWindow"))
		service := &corev1.Service{ObjectMeta: h.deployment.ObjectMeta}
		Expect(get(ctx, service).Spec.Ports[0].Port).To(BeEquivalentTo(80))
		h.at(0)
		h.once()
		Expect(get(ctx, service).Spec.Ports[0].Port).To(BeEquivalentTo(8080))
		h.done("nginx:1", 2)
	})

	It("uses no record that others have written, and keeps the pods without one", func(ctx SpecContext) {
		h := newHolding(ctx, asItIs)
		h.edit(ofImage("nginx:2"))
		h.once()
		record := h.records()[0]
		forged := record.DeepCopy()
		forged.ResourceVersion, forged.UID = "", ""
		forged.Data = runtime.RawExtension{Raw: []byte(`{"spec":{"containers":[{"name":"web","image":"forged:1"}]}}`)}
		Expect(env.Client.Delete(ctx, &record)).To(Succeed())
		Expect(env.Client.Create(ctx, forged)).To(Succeed())
		h.edit(func(a *appv1.App) { a.Spec.Replicas = new(int32(2)) })
		h.again(ctx, h.app)
		Expect(h.image()).To(Equal("nginx:1"))
		Expect(env.Client.Delete(ctx, forged)).To(Succeed())
		h.again(ctx, h.app)
		Expect(h.records()).To(HaveLen(1))
		Expect(h.image()).To(Equal("nginx:1"))
		Expect(h.deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
		h.waits(image)

		By("changing the Deployment as well, of which there is no record yet")
		h = newHolding(ctx, asItIs)
		change(ctx, h.deployment, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Args = []string{"x"} })
		change(ctx, h.deployment, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "foreign:1" })
		h.edit(ofImage("nginx:2"))
		h.once()
		Expect(h.image()).To(Equal("foreign:1"), "which the pods have, and what it replaced is not known")
		h.waits("spec")
		h.at(0)
		h.once()
		h.done("nginx:2", 4)
	})

	It("holds a field that is removed, whatever another client changes, and a Deployment that is deleted", func(ctx SpecContext) {
		h := newHolding(ctx, func(a *appv1.App) { a.Spec.Envs = []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "B", Value: "b"}} })
		h.edit(func(a *appv1.App) { a.Spec.Envs = a.Spec.Envs[:1] })
		change(ctx, h.deployment, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(5)) })
		h.once()
		Expect(get(ctx, h.deployment).Spec.Template.Spec.Containers[0].Env).To(HaveLen(2))
		change(ctx, h.deployment, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(6)) })
		h.again(ctx, h.app)
		Expect(get(ctx, h.deployment).Spec.Template.Spec.Containers[0].Env).To(HaveLen(2))

		h = newHolding(ctx, asItIs)
		h.edit(ofImage("nginx:2"))
		h.once()
		Expect(env.Client.Delete(ctx, h.deployment)).To(Succeed())
		h.once()
		Expect(h.image()).To(Equal("nginx:1"))
		h.waits(image)
		Expect(env.Client.Delete(ctx, &h.records()[0])).To(Succeed())
		Expect(env.Client.Delete(ctx, h.deployment)).To(Succeed())
		h.once()
		Expect(h.image()).To(Equal("nginx:2"), "what it had is not known, and no pod is left")
	})

	It("rolls out once, whatever the process dies at", func(ctx SpecContext) {
		steps := []struct {
			at     time.Duration
			image  string
			writes int
		}{{-time.Hour, "nginx:1", 5}, {0, "nginx:2", 3}}
		for step, crashing := range steps {
			for n := 1; n <= crashing.writes; n++ {
				for _, after := range []bool{false, true} {
					By(fmt.Sprintf("step %d, write %d, after it: %t", step, n, after))
					h := newHolding(ctx, asItIs)
					h.edit(func(a *appv1.App) { a.Spec.Image, a.Spec.Replicas = "nginx:2", new(int32(2)) })
					for i := range step + 1 {
						h.at(steps[i].at)
						dying := &crashingClient{diesAt: n, after: after}
						if i == step {
							h.write = dying.write
							_, _, _ = h.reconcile(ctx, h.app)
							Expect(dying.writes).To(BeNumerically(">=", n))
							h.write = nil
						}
						h.again(ctx, h.app)
						Expect(h.image()).To(Equal(steps[i].image))
						Expect(h.deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
					}
					if step == 1 {
						h.done("nginx:2", 3)
					} else {
						h.waits(image)
						Expect(h.records()).To(HaveLen(1))
					}
				}
			}
		}
	})

	It("works for all kinds with pods, and with restartOnChange", func(ctx SpecContext) {
		namespace := newNamespace()
		named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
		Expect(env.Client.Create(ctx, configMap(namespace, "a", "1"))).To(Succeed())
		from := []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}}}}
		volume := &runtime.RawExtension{Raw: []byte(`{"spec":{"volumes":[{"name":"v","configMap":{"name":"a"}}]}}`)}
		const all, referenced = modelv1.HoldChangesAll, modelv1.RestartOnChangeReferenced
		box := &modelv1.ModelBox{ObjectMeta: named("box"), Spec: modelv1.ModelBoxSpec{
			Image: "nginx:1", EnvFrom: from, RestartOnChange: referenced, HoldChanges: all, Windows: windowAt(opens),
			Model: &modelv1.Model{URI: "https://example.com/m.gguf"},
		}}
		daemon := &mydomainv1beta1.Genericdaemon{ObjectMeta: named("box"), Spec: mydomainv1beta1.GenericdaemonSpec{
			Image: "nginx:1", PodTemplate: volume, RestartOnChange: referenced, HoldChanges: all, Windows: windowAt(opens),
		}}
		deployment, set := &appsv1.Deployment{ObjectMeta: named("box")}, &appsv1.DaemonSet{ObjectMeta: named("box")}
		d := drive()
		reconcileAt := func(offset time.Duration) {
			GinkgoHelper()
			d.clock = clocktesting.NewFakePassiveClock(opens.Add(offset))
			for _, obj := range []client.Object{box, daemon} {
				for range 2 {
					_, _, err := d.reconcile(ctx, obj)
					Expect(err).NotTo(HaveOccurred())
				}
			}
		}
		templates := func() [2]corev1.PodTemplateSpec {
			GinkgoHelper()
			return [2]corev1.PodTemplateSpec{get(ctx, deployment).Spec.Template, get(ctx, set).Spec.Template}
		}
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		Expect(env.Client.Create(ctx, daemon)).To(Succeed())
		reconcileAt(-time.Hour)
		before := templates()
		fetcher := get(ctx, box).Status.Fetcher.TemplateHash

		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Image, b.Spec.Model.URI = "nginx:2", "https://example.com/n.gguf" })
		change(ctx, daemon, func(d *mydomainv1beta1.Genericdaemon) { d.Spec.Image = "nginx:2" })
		change(ctx, configMap(namespace, "a", ""), setValue("2"))
		rollOut(ctx, named("box"))
		rollOutDaemon(ctx, named("box"))
		reconcileAt(-time.Minute)
		Expect(templates()).To(Equal(before))
		for _, obj := range []status.Object{box, daemon} {
			Expect(readiness(ctx, obj)()).To(Equal("False WaitingForWindow"))
		}
		Expect(get(ctx, box).Status.Fetcher.TemplateHash).To(Equal(fetcher), "of the pods that run")

		reconcileAt(0)
		after := templates()
		for i := range after {
			Expect(after[i].Spec.Containers[0].Image).To(Equal("nginx:2"))
			Expect(after[i].Annotations[api.AnnotationConfiguration]).NotTo(Equal(before[i].Annotations[api.AnnotationConfiguration]), "with the data of now")
		}
		Expect(get(ctx, deployment).Generation).To(Equal(int64(2)))
		Expect(get(ctx, set).Generation).To(Equal(int64(2)))

		By("starting the next one now")
		now := func(obj client.Object) {
			obj.SetAnnotations(map[string]string{api.AnnotationRolloutNow: fmt.Sprint(obj.GetGeneration() + 1)})
		}
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Image = "nginx:3"; now(b) })
		change(ctx, daemon, func(d *mydomainv1beta1.Genericdaemon) { d.Spec.Image = "nginx:3"; now(d) })
		reconcileAt(time.Hour)
		for _, template := range templates() {
			Expect(template.Spec.Containers[0].Image).To(Equal("nginx:3"))
		}
	})
})

var _ = Describe("holdChanges of a controller with a cache", func() {
	It("sees the annotation that starts a rollout now", func(ctx SpecContext) {
		box := createBox(ctx, func(spec *modelv1.ModelBoxSpec) {
			spec.HoldChanges, spec.Windows = modelv1.HoldChangesAll, windowAt(time.Now().Add(24*time.Hour))
		})
		rollOut(ctx, box.ObjectMeta)
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Image = "nginx:2" })
		Eventually(readiness(ctx, box)).Should(Equal("False WaitingForWindow"))
		change(ctx, box, func(b *modelv1.ModelBox) {
			b.Annotations = map[string]string{api.AnnotationRolloutNow: fmt.Sprint(b.Generation)}
		})
		Eventually(func() string {
			return get(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: box.Namespace, Name: box.Name}}).Spec.Template.Spec.Containers[0].Image
		}).Should(Equal("nginx:2"))
	})
})
