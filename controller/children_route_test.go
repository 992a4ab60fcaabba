// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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

	It("split sends a share of the requests to the Service of another object", func(ctx SpecContext) {
		installCRD(routesCRD)
		startOwn(asController)
		box, child := routed(named), httpRoute(named)
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		Eventually(exists(ctx, child)).Should(BeTrue())
		backends := func() (out []string) {
			spec := get(ctx, child).Object["spec"].(map[string]any)["rules"].([]any)[0].(map[string]any)["backendRefs"]
			for _, b := range spec.([]any) {
				of := b.(map[string]any)
				out = append(out, fmt.Sprint(of["name"], ":", of["port"], " ", of["weight"]))
			}
			return out
		}
		Expect(backends()).To(Equal([]string{"web:80 1"}))
		answered(ctx, child, "Accepted", "True", "Accepted", "")
		rollOut(ctx, named)
		Eventually(readiness(ctx, box)).Should(Equal("True Ready"))
		_, mark := writes(named.Namespace, 0)

		By("a name that does not exist yet")
		split := func(shares ...modelv1.RouteShare) {
			GinkgoHelper()
			change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Route.Split = shares })
		}
		split(modelv1.RouteShare{Name: "web-next", Weight: 10})
		Eventually(backends).Should(Equal([]string{"web:80 90", "web-next:80 10"}))
		answered(ctx, child, "ResolvedRefs", "False", "BackendNotFound", `service "web-next" not found`)
		Eventually(message(ctx, box)).Should(ContainSubstring(`HTTPRoute "web": ResolvedRefs is False (BackendNotFound): service "web-next" not found`))
		Expect(readiness(ctx, box)()).To(Equal("True Ready"), "of its own pods")

		By("the next version, which is another object")
		next := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: named.Namespace, Name: "web-next"}, Spec: modelv1.ModelBoxSpec{Image: "nginx:2", Ports: []modelv1.Port{{Port: 80}}}}
		Expect(env.Client.Create(ctx, next)).To(Succeed())
		Eventually(exists(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: named.Namespace, Name: "web-next"}})).Should(BeTrue())
		answered(ctx, child, "Accepted", "True", "Accepted", "")
		Eventually(message(ctx, box)).ShouldNot(ContainSubstring("HTTPRoute"))

		By("more, and all requests")
		split(modelv1.RouteShare{Name: "web-next", Weight: 50}, modelv1.RouteShare{Name: "other", Weight: 1})
		Eventually(backends).Should(Equal([]string{"web:80 49", "web-next:80 50", "other:80 1"}))
		split(modelv1.RouteShare{Name: "web-next", Weight: 100})
		Eventually(backends).Should(Equal([]string{"web:80 0", "web-next:80 100"}))
		split()
		Eventually(backends).Should(Equal([]string{"web:80 1"}))

		By("the cost")
		count, _ := writes(named.Namespace, mark)
		Expect(describe(count)).To(ContainSubstring("5 x patch httproutes"), "one for each change of split, and one for the fields of the create")
		answered(ctx, child, "Accepted", "True", "Accepted", "")
		Eventually(message(ctx, box)).ShouldNot(ContainSubstring("HTTPRoute"))
	})

	DescribeTable("a split is refused", func(ctx SpecContext, split, want string) {
		for _, apiVersion := range []string{"model.github.com/v1, kind: ModelBox", "app.huolala.cn/v1, kind: App"} {
			obj := decoded(`{apiVersion: ` + apiVersion + `, metadata: {namespace: ` + named.Namespace + `, name: web},
spec: {image: "a:1", ports: [{port: 80}], route: {hosts: [a.example.com], gateway: {name: public}, split: ` + split + `}}}`)
			Expect(env.Client.Create(ctx, obj)).To(MatchError(ContainSubstring(want)), apiVersion)
		}
	},
		Entry("with the object itself", `[{name: web, weight: 1}]`, "spec.route.split: Invalid value"),
		Entry("with more than all requests", `[{name: a, weight: 60}, {name: b, weight: 41}]`, "the weights must be at most 100 together"),
		Entry("with no requests", `[{name: a, weight: 0}]`, "spec.route.split[0].weight: Invalid value"),
		Entry("without a weight", `[{name: a}]`, "spec.route.split[0].weight: Required value"),
		Entry("with the Service of another namespace", `[{name: a.other, weight: 1}]`, "spec.route.split[0].name: Invalid value"),
		Entry("with one Service twice", `[{name: a, weight: 1}, {name: a, weight: 2}]`, "spec.route.split[1]: Duplicate value"),
		Entry("of five", `[{name: a, weight: 1}, {name: b, weight: 1}, {name: c, weight: 1}, {name: d, weight: 1}, {name: e, weight: 1}]`, "must have at most 4 items"),
	)

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
