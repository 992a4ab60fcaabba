// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// metricsOfEachType has a HorizontalPodAutoscaler's metrics, one of each type, with the quantities that the API server writes differently.
func metricsOfEachType() map[string][]autoscalingv2.MetricSpec {
	percent := autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(60))}
	average := autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: new(resource.MustParse("0.5"))}
	value := autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: new(resource.MustParse("1000"))}
	named := autoscalingv2.MetricIdentifier{Name: "requests", Selector: &metav1.LabelSelector{
		MatchLabels:      map[string]string{"a": "b"},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "c", Operator: metav1.LabelSelectorOpExists}},
	}}
	return map[string][]autoscalingv2.MetricSpec{
		"none":     nil,
		"resource": {{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceMemory, Target: percent}}},
		"container": {{
			Type:              autoscalingv2.ContainerResourceMetricSourceType,
			ContainerResource: &autoscalingv2.ContainerResourceMetricSource{Name: corev1.ResourceCPU, Container: "container", Target: average},
		}},
		"pods":     {{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{Metric: named, Target: average}}},
		"external": {{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{Metric: named, Target: value}}},
		"object": {
			{Type: autoscalingv2.ObjectMetricSourceType, Object: &autoscalingv2.ObjectMetricSource{
				Metric: named, Target: value, DescribedObject: autoscalingv2.CrossVersionObjectReference{APIVersion: "v1", Kind: "Service", Name: "web"},
			}},
			{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{Metric: autoscalingv2.MetricIdentifier{Name: "b"}, Target: average}},
		},
	}
}

// scaleTo scales an object as an autoscaler does.
func scaleTo(ctx context.Context, obj client.Object, replicas int32) {
	GinkgoHelper()
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName()}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	Expect(env.Client.SubResource("scale").Update(ctx, obj, client.WithSubResourceBody(scale))).To(Succeed())
}

var _ = Describe("autoscaling", func() {
	It("is a HorizontalPodAutoscaler with each type of metric, and silent at rest", func(ctx SpecContext) {
		namespace := newNamespace()
		var all []status.Object
		for name, metrics := range metricsOfEachType() {
			autoscaling := &modelv1.Autoscaling{MaxReplicas: 5, Metrics: metrics}
			box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			box.Spec = modelv1.ModelBoxSpec{Image: "nginx:1", Children: modelv1.Children{Autoscaling: autoscaling}}
			app := &appv1.App{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-app"}}
			app.Spec = appv1.AppSpec{Image: "nginx:1", Children: modelv1.Children{Autoscaling: autoscaling}}
			all = append(all, box, app)
		}
		for _, obj := range all {
			Expect(env.Client.Create(ctx, obj)).To(Succeed())
		}
		for _, obj := range all {
			gvk, err := env.Client.GroupVersionKindFor(obj)
			Expect(err).NotTo(HaveOccurred())
			scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: obj.GetName()}}
			Eventually(exists(ctx, scaler)).Should(BeTrue())
			target := autoscalingv2.CrossVersionObjectReference{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: obj.GetName()}
			Expect(scaler.Spec.ScaleTargetRef).To(Equal(target))
			rollOut(ctx, metav1.ObjectMeta{Namespace: namespace, Name: obj.GetName()})
			Eventually(readiness(ctx, obj)).Should(Equal("True Ready"))
		}
		quietAfterRestart(namespace)
	})

	It("leaves replicas to the autoscaler, and keeps them without it", func(ctx SpecContext) {
		named := metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}
		box := &modelv1.ModelBox{ObjectMeta: named, Spec: modelv1.ModelBoxSpec{Image: "nginx:1", Children: modelv1.Children{
			Autoscaling: &modelv1.Autoscaling{MinReplicas: new(int32(2)), MaxReplicas: 9},
			Disruption:  &modelv1.Disruption{MaxUnavailable: new(intstr.FromInt32(1))},
		}}}
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		scaler, deployment := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: named}, &appsv1.Deployment{ObjectMeta: named}
		Eventually(exists(ctx, scaler)).Should(BeTrue())
		replicas := func() int32 { return *get(ctx, deployment).Spec.Replicas }

		By("the autoscaler scales")
		scaleTo(ctx, box, 7)
		Eventually(replicas).Should(BeEquivalentTo(7))

		By("its status says that it does not scale")
		Eventually(func() error { // The controller may apply it meanwhile.
			scaler = get(ctx, scaler)
			scaler.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{
				Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse, Reason: "FailedGetResourceMetric", Message: "no metrics", LastTransitionTime: metav1.Now(),
			}}
			return env.Client.Status().Update(ctx, scaler)
		}).Should(Succeed())
		Eventually(message(ctx, box)).Should(ContainSubstring(`HorizontalPodAutoscaler "web": ScalingActive is False (FailedGetResourceMetric): no metrics`))

		By("another client changes it")
		change(ctx, scaler, func(s *autoscalingv2.HorizontalPodAutoscaler) {
			s.Spec.MaxReplicas, s.Spec.Metrics[0].Resource.Target.AverageUtilization = 3, new(int32(1))
		})
		Eventually(func() string {
			spec := get(ctx, scaler).Spec
			return fmt.Sprint(spec.MaxReplicas, *spec.Metrics[0].Resource.Target.AverageUtilization)
		}).Should(Equal("9 80"))

		By("another autoscaler")
		foreign := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: named.Namespace, Name: "foreign"}, Spec: scaler.Spec}
		Expect(env.Client.Create(ctx, foreign)).To(Succeed())
		waitUntilCached(ctx, foreign)
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Autoscaling.MaxReplicas = 8 })
		Eventually(message(ctx, box)).Should(ContainSubstring(`HorizontalPodAutoscaler "foreign" scales it as well`))

		By("no autoscaling")
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Autoscaling = nil })
		Eventually(exists(ctx, scaler)).Should(BeFalse())
		Eventually(message(ctx, box)).ShouldNot(ContainSubstring("foreign"))
		Expect(replicas()).To(BeEquivalentTo(7))
		Expect(*box.Spec.Replicas).To(BeEquivalentTo(7))
		count, _ := writes(named.Namespace, 0)
		Expect(count).NotTo(HaveKey(ContainSubstring("/scale")))
	})

	It("has the behavior of the spec, and the defaults of Kubernetes for the rest", func(ctx SpecContext) {
		named := metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}
		rules := func(seconds *int32, policies ...autoscalingv2.HPAScalingPolicy) *autoscalingv2.HPAScalingRules {
			return &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: seconds, Policies: policies}
		}
		slow := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 1, PeriodSeconds: 120}
		box := &modelv1.ModelBox{ObjectMeta: named, Spec: modelv1.ModelBoxSpec{Image: "nginx:1", Children: modelv1.Children{Autoscaling: &modelv1.Autoscaling{
			MaxReplicas: 9, Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: rules(new(int32(600)))},
		}}}}
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: named}
		Eventually(exists(ctx, scaler)).Should(BeTrue())
		// now says what the API server has: seconds and policies of each direction.
		now := func() string {
			b := get(ctx, scaler).Spec.Behavior
			if b == nil {
				return "none"
			}
			side := func(r *autoscalingv2.HPAScalingRules) string {
				out := fmt.Sprint(ptr.Deref(r.StabilizationWindowSeconds, -1), " ", *r.SelectPolicy)
				for _, p := range r.Policies {
					out += fmt.Sprint(" ", p.Type, p.Value, "/", p.PeriodSeconds)
				}
				return out
			}
			return "up " + side(b.ScaleUp) + ", down " + side(b.ScaleDown)
		}
		const up, down = "up 0 Max Pods4/15 Percent100/15", " Max Percent100/15"
		Expect(now()).To(Equal(up + ", down 600" + down))

		By("at rest, and after a restart")
		rollOut(ctx, named)
		Eventually(readiness(ctx, box)).Should(Equal("True Ready"))
		quietAfterRestart(named.Namespace)
		Expect(get(ctx, box).Spec.Autoscaling.Behavior.ScaleUp).To(BeNil(), "no default of ours")

		By("a change")
		change(ctx, box, func(b *modelv1.ModelBox) {
			a := b.Spec.Autoscaling
			a.Behavior.ScaleUp, a.Behavior.ScaleDown = rules(new(int32(30)), slow), rules(new(int32(60)), slow)
			a.Behavior.ScaleDown.SelectPolicy = new(autoscalingv2.DisabledPolicySelect)
		})
		changed := "up 30 Max Pods1/120, down 60 Disabled Pods1/120"
		Eventually(now).Should(Equal(changed))
		quiet(named.Namespace)

		By("another client changes it")
		change(ctx, scaler, func(s *autoscalingv2.HorizontalPodAutoscaler) {
			s.Spec.Behavior.ScaleUp.StabilizationWindowSeconds, s.Spec.Behavior.ScaleDown.Policies[0].Value = new(int32(5)), 7
		})
		Eventually(now).Should(Equal(changed))

		By("a part is removed, and then all of it")
		change(ctx, box, func(b *modelv1.ModelBox) {
			b.Spec.Autoscaling.Behavior.ScaleUp, b.Spec.Autoscaling.Behavior.ScaleDown.Policies = nil, nil
		})
		Eventually(now).Should(Equal(up + ", down 60 Disabled Percent100/15"))
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Autoscaling.Behavior = nil })
		// The defaults that the API server has set may stay: no field manager owns them. They mean the same as no behavior.
		Eventually(now).Should(Or(Equal("none"), Equal(up+", down -1"+down)))
		quiet(named.Namespace)
	})

	It("has a tolerance, and says so where the API server drops it", func(ctx SpecContext) {
		named := metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}
		app := &appv1.App{ObjectMeta: named, Spec: appv1.AppSpec{Image: "nginx:1", Children: modelv1.Children{Autoscaling: &modelv1.Autoscaling{
			MaxReplicas: 9, Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &autoscalingv2.HPAScalingRules{Tolerance: new(resource.MustParse("0.05"))}},
		}}}}
		Expect(env.Client.Create(ctx, app)).To(Succeed())
		scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: named}
		Eventually(exists(ctx, scaler)).Should(BeTrue())
		rollOut(ctx, named)
		if lacks(35, "a tolerance of an autoscaler") != "" {
			Eventually(message(ctx, app)).Should(ContainSubstring("behavior.scaleUp.tolerance"))
		} else {
			Expect(get(ctx, scaler).Spec.Behavior.ScaleUp.Tolerance.String()).To(Equal("50m"))
			Eventually(readiness(ctx, app)).Should(Equal("True Ready"))
		}
		quiet(named.Namespace)
	})

	DescribeTable("is refused by the schema", func(ctx SpecContext, text, want string) {
		box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}}
		Expect(yaml.UnmarshalStrict([]byte(text), &box.Spec)).To(Succeed())
		Expect(env.Client.Create(ctx, box)).To(MatchError(ContainSubstring(want)))
	},
		Entry("with schedules", `{image: a:1, autoscaling: {maxReplicas: 2}, schedules: [{name: a, schedule: "@daily", replicas: 1}]}`, "spec.autoscaling: Invalid value"),
		Entry("with more than the maximum", `{image: a:1, autoscaling: {minReplicas: 3, maxReplicas: 2}}`, "spec.autoscaling.minReplicas: Invalid value"),
		Entry("to zero without KEDA", `{image: a:1, autoscaling: {minReplicas: 0, maxReplicas: 2}}`, "only KEDA scales to zero"),
		Entry("with both", `{image: a:1, autoscaling: {maxReplicas: 2, metrics: [{type: Other}], prometheus: {serverAddress: "http://a", query: a, target: 1}}}`,
			"may not be set together with prometheus"),
		Entry("with a cooldown of a replica that stays", `{image: a:1, autoscaling: {maxReplicas: 2, prometheus: {serverAddress: "http://a", query: a, target: 1, cooldownSeconds: 60}}}`,
			"spec.autoscaling.prometheus.cooldownSeconds: Invalid value"),
		Entry("with a cooldown beyond a week", `{image: a:1, autoscaling: {minReplicas: 0, maxReplicas: 2, prometheus: {serverAddress: "http://a", query: a, target: 1, cooldownSeconds: 604801}}}`,
			"spec.autoscaling.prometheus.cooldownSeconds: Invalid value"),
		Entry("with an idle count beside a minimum of none", `{image: a:1, autoscaling: {minReplicas: 0, maxReplicas: 2, prometheus: {serverAddress: "http://a", query: a, target: 1, idleReplicas: 0}}}`,
			"spec.autoscaling.prometheus.idleReplicas: Invalid value"),
		Entry("with an idle count of one", `{image: a:1, autoscaling: {minReplicas: 2, maxReplicas: 2, prometheus: {serverAddress: "http://a", query: a, target: 1, idleReplicas: 1}}}`,
			"spec.autoscaling.prometheus.idleReplicas: Invalid value"),
		Entry("with a further query of no text", `{image: a:1, autoscaling: {maxReplicas: 2, prometheus: {serverAddress: "http://a", query: a, target: 1, additionalQueries: [{target: 1}]}}}`,
			"spec.autoscaling.prometheus.additionalQueries[0].query: Invalid value"),
		Entry("with the file of a further query", `{image: a:1, autoscaling: {maxReplicas: 2, prometheus: {serverAddress: "http://a", query: a, target: 1, additionalQueries: [{serverAddress: "file:///a", query: b, target: 1}]}}}`,
			"spec.autoscaling.prometheus.additionalQueries[0].serverAddress: Invalid value"),
		Entry("with a window beyond an hour", `{image: a:1, autoscaling: {maxReplicas: 2, behavior: {scaleDown: {stabilizationWindowSeconds: 3601}}}}`,
			"spec.autoscaling.behavior.scaleDown.stabilizationWindowSeconds: Invalid value"),
		Entry("with a policy of nothing", `{image: a:1, autoscaling: {maxReplicas: 2, behavior: {scaleUp: {policies: [{type: Pods, value: 0, periodSeconds: 15}]}}}}`,
			"spec.autoscaling.behavior.scaleUp.policies[0].value: Invalid value"),
		Entry("with a policy of no time", `{image: a:1, autoscaling: {maxReplicas: 2, behavior: {scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 0}]}}}}`,
			"spec.autoscaling.behavior.scaleUp.policies[0].periodSeconds: Invalid value"),
		Entry("with a policy of more than half an hour", `{image: a:1, autoscaling: {maxReplicas: 2, behavior: {scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 1801}]}}}}`,
			"spec.autoscaling.behavior.scaleUp.policies[0].periodSeconds: Invalid value"),
		Entry("with a policy of another type", `{image: a:1, autoscaling: {maxReplicas: 2, behavior: {scaleDown: {policies: [{type: Nodes, value: 1, periodSeconds: 15}]}}}}`,
			"spec.autoscaling.behavior.scaleDown.policies[0].type: Unsupported value"),
		Entry("with another choice", `{image: a:1, autoscaling: {maxReplicas: 2, behavior: {scaleDown: {selectPolicy: Most}}}}`,
			"spec.autoscaling.behavior.scaleDown.selectPolicy: Unsupported value"),
	)

	It("is a ScaledObject of KEDA with a query of Prometheus", func(ctx SpecContext) {
		installCRD(autoscalersCRD)
		named := metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}
		app := &appv1.App{ObjectMeta: named, Spec: appv1.AppSpec{Image: "nginx:1", Children: modelv1.Children{Autoscaling: &modelv1.Autoscaling{MaxReplicas: 4}}}}
		Expect(env.Client.Create(ctx, app)).To(Succeed())
		scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: named}
		Eventually(exists(ctx, scaler)).Should(BeTrue())
		spec := scaler.Spec
		change(ctx, app, func(a *appv1.App) {
			a.Spec.Autoscaling.MinReplicas = new(int32(0))
			a.Spec.Autoscaling.Prometheus = &modelv1.PrometheusQuery{ServerAddress: "http://prometheus:9090", Query: "sum(a)", Target: resource.MustParse("16")}
		})
		scaled := untypedChild("keda.sh/v1alpha1", "ScaledObject", named)
		Eventually(exists(ctx, scaled)).Should(BeTrue())
		Eventually(exists(ctx, scaler)).Should(BeFalse())

		By("KEDA makes its own HorizontalPodAutoscaler")
		own := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: named.Namespace, Name: "keda-hpa-web"}, Spec: spec}
		own.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(scaled, scaled.GroupVersionKind())}
		Expect(env.Client.Create(ctx, own)).To(Succeed())
		waitUntilCached(ctx, own)
		Eventually(func() error {
			get(ctx, scaled)
			scaled.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": "TriggerError", "message": "no such host"}}}
			return env.Client.Status().Update(ctx, scaled)
		}).Should(Succeed())
		Eventually(message(ctx, app)).Should(ContainSubstring(`ScaledObject "web": Ready is False (TriggerError): no such host`))
		Expect(message(ctx, app)()).NotTo(ContainSubstring("keda-hpa-web"))

		By("at rest, and after a restart")
		rollOut(ctx, named)
		Eventually(readiness(ctx, app)).Should(Equal("True Ready"))
		quietAfterRestart(named.Namespace)

		By("another client changes it")
		change(ctx, scaled, func(s *unstructured.Unstructured) {
			Expect(unstructured.SetNestedField(s.Object, int64(50), "spec", "maxReplicaCount")).To(Succeed())
			Expect(unstructured.SetNestedField(s.Object, int64(300), "spec", "cooldownPeriod")).To(Succeed())
		})
		Eventually(func() any { return get(ctx, scaled).Object["spec"].(map[string]any)["maxReplicaCount"] }).Should(BeEquivalentTo(4))
		Expect(scaled.Object["spec"]).To(HaveKeyWithValue("cooldownPeriod", BeEquivalentTo(300)), "a field of another client")

		By("behavior and a cooldown, beside a setting of another client")
		change(ctx, scaled, func(s *unstructured.Unstructured) {
			Expect(unstructured.SetNestedField(s.Object, true, "spec", "advanced", "restoreToOriginalReplicaCount")).To(Succeed())
		})
		change(ctx, app, func(a *appv1.App) {
			a.Spec.Autoscaling.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{
				StabilizationWindowSeconds: new(int32(600)), Policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 1, PeriodSeconds: 60}},
			}}
			a.Spec.Autoscaling.Prometheus.CooldownSeconds = new(int32(1800))
		})
		const others = `"restoreToOriginalReplicaCount":true`
		settings := func() string {
			spec := get(ctx, scaled).Object["spec"].(map[string]any)
			text, err := json.Marshal(spec["advanced"])
			Expect(err).NotTo(HaveOccurred())
			return fmt.Sprint(spec["cooldownPeriod"], " ", string(text))
		}
		Eventually(settings).Should(Equal(`1800 {"horizontalPodAutoscalerConfig":{"behavior":{"scaleDown":{` +
			`"policies":[{"periodSeconds":60,"type":"Pods","value":1}],"stabilizationWindowSeconds":600}}},` + others + `}`))
		quietAfterRestart(named.Namespace)
		change(ctx, app, func(a *appv1.App) {
			a.Spec.Autoscaling.Behavior, a.Spec.Autoscaling.Prometheus.CooldownSeconds = nil, nil
		})
		Eventually(settings).Should(And(Not(ContainSubstring("1800")), Not(ContainSubstring("behavior")), ContainSubstring(others)))

		By("further queries, and none of a minimum while all are 0")
		change(ctx, app, func(a *appv1.App) {
			a.Spec.Autoscaling.MinReplicas, a.Spec.Autoscaling.Prometheus.IdleReplicas = new(int32(2)), new(int32(0))
			a.Spec.Autoscaling.Prometheus.AdditionalQueries = []modelv1.AdditionalQuery{{Query: "b", Target: resource.MustParse("4")}}
		})
		queries := func() (out []string) {
			spec := get(ctx, scaled).Object["spec"].(map[string]any)
			out = append(out, fmt.Sprint(spec["idleReplicaCount"], " ", spec["minReplicaCount"]))
			for _, t := range spec["triggers"].([]any) {
				m := t.(map[string]any)["metadata"].(map[string]any)
				out = append(out, fmt.Sprint(m["serverAddress"], " ", m["query"], " ", m["threshold"]))
			}
			return out
		}
		Eventually(queries).Should(Equal([]string{"0 2", "http://prometheus:9090 sum(a) 16", "http://prometheus:9090 b 4"}))
		quietAfterRestart(named.Namespace)
		change(ctx, app, func(a *appv1.App) {
			a.Spec.Autoscaling.Prometheus.IdleReplicas, a.Spec.Autoscaling.Prometheus.AdditionalQueries = nil, nil
		})
		Eventually(queries).Should(Equal([]string{"<nil> 2", "http://prometheus:9090 sum(a) 16"}))

		By("no autoscaling")
		change(ctx, app, func(a *appv1.App) { a.Spec.Autoscaling = nil })
		Eventually(exists(ctx, scaled)).Should(BeFalse())
	})

	It("says how to start an object that KEDA scaled to 0, when metrics replace prometheus", func(ctx SpecContext) {
		installCRD(autoscalersCRD)
		const sentence = "a HorizontalPodAutoscaler does not start from 0 replicas; set 1 or more, as by kubectl scale"
		byKEDA := modelv1.Children{Autoscaling: &modelv1.Autoscaling{
			MinReplicas: new(int32(0)), MaxReplicas: 4,
			Prometheus: &modelv1.PrometheusQuery{ServerAddress: "http://prometheus:9090", Query: "sum(a)", Target: resource.MustParse("16")},
		}}
		named := metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}
		app := &appv1.App{ObjectMeta: named, Spec: appv1.AppSpec{Image: "nginx:1", Children: byKEDA}}
		box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}, Spec: modelv1.ModelBoxSpec{Image: "nginx:1", Children: *byKEDA.DeepCopy()}}
		for obj, children := range map[status.Object]*modelv1.Children{app: &app.Spec.Children, box: &box.Spec.Children} {
			named.Namespace = obj.GetNamespace()
			deployment := &appsv1.Deployment{ObjectMeta: named}
			replicas := func() int32 { return *get(ctx, deployment).Spec.Replicas }
			Expect(env.Client.Create(ctx, obj)).To(Succeed())
			Eventually(exists(ctx, untypedChild("keda.sh/v1alpha1", "ScaledObject", named))).Should(BeTrue())
			scaleTo(ctx, obj, 0)
			Eventually(replicas).Should(BeZero())
			rollOut(ctx, named)
			Eventually(readiness(ctx, obj)).Should(Equal("True Ready"))
			Expect(message(ctx, obj)()).NotTo(ContainSubstring(sentence), "KEDA starts it")

			change(ctx, obj, func(status.Object) {
				children.Autoscaling.MinReplicas, children.Autoscaling.Prometheus = new(int32(1)), nil
				children.Autoscaling.Metrics = metricsOfEachType()["pods"]
			})
			Eventually(exists(ctx, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: named})).Should(BeTrue())
			Eventually(message(ctx, obj)).Should(ContainSubstring(sentence))
			stop()
			start()
			change(ctx, obj, func(obj status.Object) { obj.SetLabels(map[string]string{"a": "b"}) })
			Consistently(message(ctx, obj), 500*time.Millisecond).Should(ContainSubstring(sentence))
			Expect(replicas()).To(BeZero())

			scaleTo(ctx, obj, 1)
			Eventually(replicas).Should(BeEquivalentTo(1))
			rollOut(ctx, named)
			Eventually(readiness(ctx, obj)).Should(Equal("True Ready"))
			Expect(message(ctx, obj)()).NotTo(ContainSubstring(sentence))
		}
	})
})
