// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// specOf returns the spec of an object.
func specOf(obj *unstructured.Unstructured) any { return obj.Object["spec"] }

// specYAML returns a value as a client decodes it.
func specYAML(text string) any {
	GinkgoHelper()
	return decoded("apiVersion: v1\nkind: A\nspec:\n" + text).Object["spec"]
}

// answered writes the status of an HTTPRoute as a controller of a Gateway does.
func answered(ctx SpecContext, child *unstructured.Unstructured, condition, value, reason, message string) {
	GinkgoHelper()
	Eventually(func() error {
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(child), child); err != nil {
			return err
		}
		child.Object["status"] = map[string]any{"parents": []any{map[string]any{
			"parentRef": map[string]any{"name": "public"}, "controllerName": "example.com/gateway",
			"conditions": []any{map[string]any{
				"type": condition, "status": value, "reason": reason, "message": message,
				"observedGeneration": child.GetGeneration(), "lastTransitionTime": "2026-01-01T00:00:00Z",
			}},
		}}}
		return env.Client.Status().Update(ctx, child)
	}).Should(Succeed())
}

var _ = Describe("optional children of an object", func() {
	var named metav1.ObjectMeta
	BeforeEach(func() {
		alone() // That of the suite would keep the informers of kinds that are removed.
		named = metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}
	})

	It("route is an HTTPRoute, whose status is in that of the object", func(ctx SpecContext) {
		installCRD(routesCRD)
		startOwn(asController)
		box, child := routed(named), httpRoute(named)
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		Eventually(exists(ctx, child)).Should(BeTrue())
		Expect(specOf(child)).To(Equal(specYAML(`
  hostnames: ["*.example.com", chat.example.com]
  parentRefs: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: infra, name: public, sectionName: https}]
  rules:
  - matches: [{path: {type: PathPrefix, value: /v1}}]
    backendRefs: [{group: "", kind: Service, name: web, port: 80, weight: 1}]
`)))
		url := func() string { return get(ctx, box).Status.URL }

		By("what its Gateway says")
		Eventually(message(ctx, box)).Should(ContainSubstring(`HTTPRoute "web": no Gateway has accepted it yet`))
		answered(ctx, child, "Accepted", "False", "NoMatchingListenerHostname", "no listener has this host")
		Eventually(message(ctx, box)).Should(ContainSubstring(`HTTPRoute "web": Accepted is False (NoMatchingListenerHostname): no listener has this host`))
		Expect(url()).To(BeEmpty())
		answered(ctx, child, "Accepted", "True", "Accepted", "")
		Eventually(url).Should(Equal("https://chat.example.com/v1"))
		Eventually(message(ctx, box)).ShouldNot(ContainSubstring("HTTPRoute"))

		By("no write at rest")
		rollOut(ctx, named)
		Eventually(readiness(ctx, box)).Should(HavePrefix("True"))
		_, mark := writes(named.Namespace, 0)
		rollOut(ctx, named)
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Replicas = new(int32(2)) })
		Eventually(readiness(ctx, box)).Should(Equal("False Progressing"))
		count, _ := writes(named.Namespace, mark)
		Expect(describe(count)).NotTo(ContainSubstring("httproutes"), "those of the Deployment and the status")

		By("drift")
		change(ctx, child, func(c *unstructured.Unstructured) {
			Expect(unstructured.SetNestedStringSlice(c.Object, []string{"stolen.example.com"}, "spec", "hostnames")).To(Succeed())
		})
		Eventually(func() any { return get(ctx, child).Object["spec"].(map[string]any)["hostnames"] }).Should(HaveLen(2))

		By("a change, which no Gateway has accepted yet")
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Route.Path, b.Spec.Route.Gateway.Listener = "", "" })
		Eventually(func() any { return get(ctx, child).Object["spec"].(map[string]any)["parentRefs"] }).Should(Equal([]any{
			map[string]any{"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "infra", "name": "public"}}))
		Eventually(url).Should(BeEmpty())
		answered(ctx, child, "Accepted", "True", "Accepted", "")
		Eventually(url).Should(Equal("https://chat.example.com/"))

		By("removal")
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Route = nil })
		Eventually(exists(ctx, child)).Should(BeFalse())
		Eventually(url).Should(BeEmpty())
	})

	It("monitoring is a PodMonitor of its pods", func(ctx SpecContext) {
		installCRD(monitorsCRD)
		startOwn(asController)
		box := &modelv1.ModelBox{ObjectMeta: named, Spec: modelv1.ModelBoxSpec{
			Image: "nginx:1", Ports: []modelv1.Port{{Port: 80, TargetPort: new(intstr.FromInt32(8080))}},
			Children: modelv1.Children{Monitoring: &modelv1.Monitoring{}},
		}}
		child := podMonitor(named)
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		Eventually(exists(ctx, child)).Should(BeTrue())
		Expect(specOf(child)).To(Equal(specYAML(`
  selector: {matchLabels: {app.kubernetes.io/name: modelbox, app.kubernetes.io/instance: web}}
  namespaceSelector: {any: false, matchNames: [` + named.Namespace + `]}
  podMetricsEndpoints: [{portNumber: 8080, path: /metrics}]
`)))
		deployment := get(ctx, &appsv1.Deployment{ObjectMeta: named})
		Expect(deployment.Spec.Template.Labels).To(And(
			HaveKeyWithValue("app.kubernetes.io/name", "modelbox"), HaveKeyWithValue("app.kubernetes.io/instance", "web")))
		change(ctx, box, func(b *modelv1.ModelBox) {
			b.Spec.Monitoring = &modelv1.Monitoring{Port: new(intstr.FromString("metrics")), Path: "/stats", Interval: "30s"}
		})
		Eventually(func() any { return specOf(get(ctx, child)).(map[string]any)["podMetricsEndpoints"] }).Should(
			Equal([]any{map[string]any{"port": "metrics", "path": "/stats", "interval": "30s"}}))
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Monitoring = nil })
		Eventually(exists(ctx, child)).Should(BeFalse())
	})
})
