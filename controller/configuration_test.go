// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// configMap returns a ConfigMap with one value.
func configMap(namespace, name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"key": value}}
}

// configured returns an App that refers to ConfigMaps and asks for rollouts.
func configured(named metav1.ObjectMeta, names ...string) *appv1.App {
	app := &appv1.App{ObjectMeta: named, Spec: appv1.AppSpec{Image: "nginx:1", RestartOnChange: modelv1.RestartOnChangeReferenced}}
	for _, name := range names {
		app.Spec.EnvFrom = append(app.Spec.EnvFrom, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}})
	}
	return app
}

// windowAt returns a window of one minute that opens once a year, at a minute of UTC.
func windowAt(at time.Time) modelv1.Windows {
	at = at.UTC()
	schedule := fmt.Sprintf("%d %d %d %d *", at.Minute(), at.Hour(), at.Day(), at.Month())
	return modelv1.Windows{Windows: []modelv1.Window{{Schedule: schedule, TimeZone: "Etc/UTC", Duration: metav1.Duration{Duration: time.Minute}}}}
}

func setValue(value string) func(*corev1.ConfigMap) {
	return func(c *corev1.ConfigMap) { c.Data = map[string]string{"key": value} }
}

// linesOf returns a function that returns the lines of the annotation of a Deployment's pod template, by the object that they name.
func linesOf(ctx context.Context, named metav1.ObjectMeta) func() map[string]string {
	return func() map[string]string {
		deployment, lines := &appsv1.Deployment{ObjectMeta: named}, map[string]string{}
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return nil
		}
		for line := range strings.Lines(deployment.Spec.Template.Annotations[api.AnnotationConfiguration]) {
			name, hash, _ := strings.Cut(strings.TrimSpace(line), " ")
			lines[name] = hash
		}
		return lines
	}
}

var _ = Describe("restartOnChange", func() {
	ctx := context.Background()

	It("rolls out changed data, and no label and no missing ConfigMap", func() {
		named := metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}
		app, lines := configured(named, "a", "b"), linesOf(ctx, named)
		settings, other := configMap(named.Namespace, "a", "1"), configMap(named.Namespace, "b", "1")
		Expect(env.Client.Create(ctx, other)).To(Succeed())
		Expect(env.Client.Create(ctx, app)).To(Succeed())
		Eventually(lines).Should(And(HaveKeyWithValue("ConfigMap/a", ""), HaveKeyWithValue("ConfigMap/b", HaveLen(16))))
		Eventually(message(ctx, app)).Should(ContainSubstring(`ConfigMap "a" does not exist`))

		By("creating what is missing")
		Expect(env.Client.Create(ctx, settings)).To(Succeed())
		Eventually(lines).Should(HaveKeyWithValue("ConfigMap/a", HaveLen(16)))
		Eventually(message(ctx, app)).ShouldNot(ContainSubstring("does not exist"))
		before, generation := lines(), get(ctx, &appsv1.Deployment{ObjectMeta: named}).Generation

		By("changing a label of one, and then the data of the other")
		change(ctx, settings, func(c *corev1.ConfigMap) { c.Labels = map[string]string{"a": "b"} })
		change(ctx, other, setValue("2"))
		Eventually(lines).ShouldNot(HaveKeyWithValue("ConfigMap/b", before["ConfigMap/b"]))
		Expect(lines()).To(HaveKeyWithValue("ConfigMap/a", before["ConfigMap/a"]))
		Expect(get(ctx, &appsv1.Deployment{ObjectMeta: named}).Generation).To(Equal(generation + 1))

		By("deleting one, and then changing the other")
		Expect(env.Client.Delete(ctx, settings)).To(Succeed())
		Eventually(message(ctx, app)).Should(ContainSubstring(`ConfigMap "a" does not exist`))
		change(ctx, other, setValue("1"))
		Eventually(lines).Should(Equal(before), "the same data has the same hash, and what was deleted keeps its own")

		By("no longer asking for it")
		change(ctx, app, func(a *appv1.App) { a.Spec.RestartOnChange = "" })
		Eventually(lines).Should(BeEmpty())
		Eventually(message(ctx, app)).ShouldNot(ContainSubstring("restartOnChange"))
	})

	It("makes one revision of a file that has the object before its ConfigMaps", func() {
		each([]int{1, 2, 3}, func(n int) {
			named := metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}
			var names []string
			for i := range n {
				names = append(names, fmt.Sprintf("c%d", i))
			}
			Expect(env.Client.Create(ctx, configured(named, names...))).To(Succeed())
			for _, name := range names {
				Expect(env.Client.Create(ctx, configMap(named.Namespace, name, "1"))).To(Succeed())
			}
			Eventually(linesOf(ctx, named)).Should(HaveLen(n))
			Consistently(func(g Gomega) {
				deployment := &appsv1.Deployment{ObjectMeta: named}
				g.Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
				g.Expect(deployment.Generation).To(BeEquivalentTo(1))
				g.Expect(linesOf(ctx, named)()).To(HaveEach(HaveLen(16)))
			}, "3s").Should(Succeed())
		})
	})

	It("waits while the namespace is frozen, and rolls out once afterwards", func() {
		named := metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}
		app, lines, settings := configured(named, "a"), linesOf(ctx, named), configMap(named.Namespace, "a", "1")
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: named.Namespace}}
		Expect(env.Client.Create(ctx, settings)).To(Succeed())
		Expect(env.Client.Create(ctx, app)).To(Succeed())
		rollOut(ctx, named)
		Eventually(readiness(ctx, app)).Should(Equal("True Ready"))
		before := lines()

		change(ctx, namespace, func(n *corev1.Namespace) { n.Annotations = map[string]string{api.AnnotationFrozen: "holidays"} })
		change(ctx, settings, setValue("2"))
		Eventually(readiness(ctx, app)).Should(Equal("False Frozen"))
		Expect(message(ctx, app)()).To(ContainSubstring("rollout of changed ConfigMap/a is on hold: namespace is frozen (holidays)"))
		Expect(lines()).To(Equal(before))

		By("scaling it meanwhile")
		change(ctx, app, func(a *appv1.App) { a.Spec.Replicas = new(int32(2)) })
		Eventually(func() int32 { return *get(ctx, &appsv1.Deployment{ObjectMeta: named}).Spec.Replicas }).Should(Equal(int32(2)))
		Expect(lines()).To(Equal(before))
		rollOut(ctx, named)
		generation := get(ctx, &appsv1.Deployment{ObjectMeta: named}).Generation

		By("ending the freeze, and not waiting for the next look at the namespace")
		change(ctx, namespace, func(n *corev1.Namespace) { n.Annotations = nil })
		change(ctx, app, func(a *appv1.App) { a.Labels = map[string]string{"a": "b"} })
		Eventually(lines).ShouldNot(Equal(before))
		Expect(get(ctx, &appsv1.Deployment{ObjectMeta: named}).Generation).To(Equal(generation + 1))
	})
})

var _ = Describe("configuration that changes while a window is closed", Ordered, func() {
	BeforeAll(alone)
	ctx := context.Background()

	It("is rolled out once, in another process, when the window opens", func() {
		named := metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}
		app, settings, opens := configured(named, "a"), configMap(named.Namespace, "a", "1"), time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
		app.Spec.Windows = windowAt(opens)
		reconcileAt := func(at time.Time) time.Duration {
			GinkgoHelper()
			result, err := reconcilerOf("App", writerWith(env.Client, env.Client), clocktesting.NewFakePassiveClock(at)).Reconcile(ctx, requestFor(app))
			Expect(err).NotTo(HaveOccurred())
			return result.RequeueAfter
		}
		generation := func() int64 { return get(ctx, &appsv1.Deployment{ObjectMeta: named}).Generation }
		Expect(env.Client.Create(ctx, settings)).To(Succeed())
		Expect(env.Client.Create(ctx, app)).To(Succeed())
		reconcileAt(opens.Add(-time.Hour))
		rollOut(ctx, named)
		before := linesOf(ctx, named)()
		Expect(before).To(HaveKeyWithValue("ConfigMap/a", HaveLen(16)), "a creation does not wait")

		By("changing it twice, and the image")
		for _, value := range []string{"2", "3"} {
			change(ctx, settings, setValue(value))
			Expect(reconcileAt(opens.Add(-time.Minute))).To(Equal(time.Minute))
			Expect(readiness(ctx, app)()).To(Equal("False WaitingForWindow"))
			Expect(message(ctx, app)()).To(ContainSubstring("rollout of changed ConfigMap/a is on hold: next window opens at 2026-03-01T02:00:00Z"))
		}
		Expect(generation()).To(Equal(int64(1)))
		change(ctx, app, func(a *appv1.App) { a.Spec.Image = "nginx:2" })
		reconcileAt(opens.Add(-time.Second))
		Expect(generation()).To(Equal(int64(2)), "a change of the spec does not wait")
		Expect(linesOf(ctx, named)()).NotTo(Equal(before), "and needs no second rollout")
		before = linesOf(ctx, named)()
		change(ctx, settings, setValue("4"))
		reconcileAt(opens)
		Expect(generation()).To(Equal(int64(2)))
		Expect(message(ctx, app)()).To(ContainSubstring("rollout of changed ConfigMap/a is on hold: another rollout is in progress"))
		rollOut(ctx, named)
		reconcileAt(opens.Add(-time.Second))
		Expect(generation()).To(Equal(int64(2)))

		By("opening the window")
		reconcileAt(opens)
		reconcileAt(opens)
		Expect(generation()).To(Equal(int64(3)))
		Expect(linesOf(ctx, named)()).NotTo(Equal(before))
		Expect(message(ctx, app)()).NotTo(ContainSubstring("on hold"))
	})
})
