// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	internal "k8s.io/kubernetes/pkg/apis/autoscaling"
	kubernetesv2 "k8s.io/kubernetes/pkg/apis/autoscaling/v2"
	kubernetes "k8s.io/kubernetes/pkg/apis/autoscaling/validation"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

func autoscaled(how func(*modelv1.Autoscaling)) *Object {
	a := &modelv1.Autoscaling{MaxReplicas: 3}
	how(a)
	return &Object{
		Children: &modelv1.Children{Autoscaling: a}, Replicas: 2,
		Meta:  metav1.ObjectMeta{Name: "web", Namespace: "team", Labels: map[string]string{"a": "b"}},
		Owner: schema.GroupVersionKind{Group: "app.huolala.cn", Version: "v1", Kind: "App"},
	}
}

func byPrometheus(a *modelv1.Autoscaling) {
	a.Prometheus = &modelv1.PrometheusQuery{ServerAddress: "http://prometheus:9090", Query: "sum(a)", Target: resource.MustParse("1500m")}
}

// further sets queries beside the first one.
func further(queries ...modelv1.AdditionalQuery) func(*modelv1.Autoscaling) {
	return func(a *modelv1.Autoscaling) { byPrometheus(a); a.Prometheus.AdditionalQueries = queries }
}

func utilization(name corev1.ResourceName, percent int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
		Name: name, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent},
	}}
}

func TestValidateAutoscaling(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*modelv1.Autoscaling)
		want   string
	}{
		"valid":             {func(*modelv1.Autoscaling) {}, ""},
		"as many":           {func(a *modelv1.Autoscaling) { a.MinReplicas = new(int32(3)) }, ""},
		"to zero":           {func(a *modelv1.Autoscaling) { byPrometheus(a); a.MinReplicas = new(int32(0)) }, ""},
		"no maximum":        {func(a *modelv1.Autoscaling) { a.MaxReplicas = 0 }, "spec.autoscaling.maxReplicas"},
		"too many":          {func(a *modelv1.Autoscaling) { a.MaxReplicas = modelv1.MaxReplicas + 1 }, "spec.autoscaling.maxReplicas"},
		"fewer than none":   {func(a *modelv1.Autoscaling) { byPrometheus(a); a.MinReplicas = new(int32(-1)) }, "spec.autoscaling.minReplicas"},
		"more than maximum": {func(a *modelv1.Autoscaling) { a.MinReplicas = new(int32(4)) }, "spec.autoscaling.minReplicas"},
		"zero without KEDA": {func(a *modelv1.Autoscaling) { a.MinReplicas = new(int32(0)) }, "spec.autoscaling.minReplicas"},
		"both":              {func(a *modelv1.Autoscaling) { byPrometheus(a); a.Metrics = append(a.Metrics, utilization("cpu", 50)) }, "spec.autoscaling.metrics"},
		"too many metrics":  {func(a *modelv1.Autoscaling) { a.Metrics = make([]autoscalingv2.MetricSpec, modelv1.MaxMetrics+1) }, "spec.autoscaling.metrics"},
		"a wrong metric":    {func(a *modelv1.Autoscaling) { a.Metrics = append(a.Metrics, utilization("cpu", 0)) }, "spec.autoscaling.metrics[0].resource.target.averageUtilization"},
		"no URL":            {func(a *modelv1.Autoscaling) { byPrometheus(a); a.Prometheus.ServerAddress = "prometheus:9090" }, "spec.autoscaling.prometheus.serverAddress"},
		"a file":            {func(a *modelv1.Autoscaling) { byPrometheus(a); a.Prometheus.ServerAddress = "file:///a" }, "spec.autoscaling.prometheus.serverAddress"},
		"a long URL":        {func(a *modelv1.Autoscaling) { byPrometheus(a); a.Prometheus.ServerAddress += strings.Repeat("a", 2048) }, "spec.autoscaling.prometheus.serverAddress"},
		"no query":          {func(a *modelv1.Autoscaling) { byPrometheus(a); a.Prometheus.Query = "" }, "spec.autoscaling.prometheus.query"},
		"a long query":      {func(a *modelv1.Autoscaling) { byPrometheus(a); a.Prometheus.Query = strings.Repeat("a", 8193) }, "spec.autoscaling.prometheus.query"},
		"no target":         {func(a *modelv1.Autoscaling) { byPrometheus(a); a.Prometheus.Target = resource.Quantity{} }, "spec.autoscaling.prometheus.target"},
		"too many policies": {
			behaves(&autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &autoscalingv2.HPAScalingRules{Policies: make([]autoscalingv2.HPAScalingPolicy, modelv1.MaxScalingPolicies+1)}}),
			"spec.autoscaling.behavior.scaleUp.policies",
		},
		"a wrong policy": {
			behaves(&autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{Policies: make([]autoscalingv2.HPAScalingPolicy, 1)}}),
			"spec.autoscaling.behavior.scaleDown.policies[0].type spec.autoscaling.behavior.scaleDown.policies[0].value spec.autoscaling.behavior.scaleDown.policies[0].periodSeconds",
		},
		"a cooldown": {func(a *modelv1.Autoscaling) {
			byPrometheus(a)
			a.MinReplicas, a.Prometheus.CooldownSeconds = new(int32(0)), new(int32(0))
		}, ""},
		"a cooldown of one": {func(a *modelv1.Autoscaling) { byPrometheus(a); a.Prometheus.CooldownSeconds = new(int32(60)) }, "spec.autoscaling.prometheus.cooldownSeconds"},
		"a cooldown of a month": {func(a *modelv1.Autoscaling) {
			byPrometheus(a)
			a.MinReplicas, a.Prometheus.CooldownSeconds = new(int32(0)), new(int32(2592000))
		}, "spec.autoscaling.prometheus.cooldownSeconds"},
		"idle": {func(a *modelv1.Autoscaling) {
			byPrometheus(a)
			a.MinReplicas, a.Prometheus.IdleReplicas, a.Prometheus.CooldownSeconds = new(int32(2)), new(int32(0)), new(int32(60))
		}, ""},
		"idle, the least of which is the default": {func(a *modelv1.Autoscaling) { byPrometheus(a); a.Prometheus.IdleReplicas = new(int32(0)) }, ""},
		"idle with one":            {func(a *modelv1.Autoscaling) { byPrometheus(a); a.Prometheus.IdleReplicas = new(int32(1)) }, "spec.autoscaling.prometheus.idleReplicas"},
		"idle with less than none": {func(a *modelv1.Autoscaling) { byPrometheus(a); a.Prometheus.IdleReplicas = new(int32(-1)) }, "spec.autoscaling.prometheus.idleReplicas"},
		"idle of none": {func(a *modelv1.Autoscaling) {
			byPrometheus(a)
			a.MinReplicas, a.Prometheus.IdleReplicas = new(int32(0)), new(int32(0))
		}, "spec.autoscaling.prometheus.idleReplicas"},
		"further queries":  {further(modelv1.AdditionalQuery{ServerAddress: "https://b", Query: "b", Target: resource.MustParse("2")}, modelv1.AdditionalQuery{Query: "c", Target: resource.MustParse("3")}), ""},
		"too many queries": {further(make([]modelv1.AdditionalQuery, modelv1.MaxAdditionalQueries+1)...), "spec.autoscaling.prometheus.additionalQueries"},
		"further queries that are none": {
			further(modelv1.AdditionalQuery{}, modelv1.AdditionalQuery{ServerAddress: "b", Query: strings.Repeat("a", 8193), Target: resource.MustParse("-1")}),
			"spec.autoscaling.prometheus.additionalQueries[0].query spec.autoscaling.prometheus.additionalQueries[0].target " +
				"spec.autoscaling.prometheus.additionalQueries[1].serverAddress spec.autoscaling.prometheus.additionalQueries[1].query spec.autoscaling.prometheus.additionalQueries[1].target",
		},
		"a target below one": {func(a *modelv1.Autoscaling) { byPrometheus(a); a.Prometheus.Target = resource.MustParse("1m") }, ""},
	} {
		fields := map[string]bool{}
		for _, err := range Validate(field.NewPath("spec"), autoscaled(test.change)) {
			fields[err.Field] = true
		}
		want := map[string]bool{}
		for f := range strings.FieldsSeq(test.want) {
			want[f] = true
		}
		if diff := cmp.Diff(want, fields); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	scheduled := autoscaled(func(*modelv1.Autoscaling) {})
	scheduled.Scheduled = true
	if errs := Validate(field.NewPath("spec"), scheduled); len(errs) != 1 || errs[0].Field != "spec.autoscaling" {
		t.Errorf("with schedules: %v", errs)
	}
}

// TestOneAutoscaler: an object has a HorizontalPodAutoscaler or a ScaledObject, never both, on its
// own scale.
func TestOneAutoscaler(t *testing.T) {
	t.Parallel()
	children := Of(autoscaled(func(*modelv1.Autoscaling) {}))
	if len(children) != 1 {
		t.Fatalf("%d children", len(children))
	}
	want := autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "app.huolala.cn/v1", Kind: "App", Name: "web"},
		MinReplicas:    new(int32(1)), MaxReplicas: 3, Metrics: []autoscalingv2.MetricSpec{utilization("cpu", 80)},
	}
	if diff := cmp.Diff(want, children[0].(*autoscalingv2.HorizontalPodAutoscaler).Spec); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	children = Of(autoscaled(func(a *modelv1.Autoscaling) { byPrometheus(a); a.MinReplicas = new(int32(0)) }))
	if len(children) != 1 {
		t.Fatalf("%d children", len(children))
	}
	scaled := map[string]any{
		"scaleTargetRef":  map[string]any{"apiVersion": "app.huolala.cn/v1", "kind": "App", "name": "web"},
		"minReplicaCount": int64(0), "maxReplicaCount": int64(3),
		"triggers": []any{map[string]any{"type": "prometheus", "metadata": map[string]any{
			"serverAddress": "http://prometheus:9090", "query": "sum(a)", "threshold": "1.5", "ignoreNullValues": "false",
		}}},
	}
	child := children[0].(*unstructured.Unstructured)
	metadata := func(address, query, threshold string) any {
		return map[string]any{"type": "prometheus", "metadata": map[string]any{"serverAddress": address, "query": query, "threshold": threshold, "ignoreNullValues": "false"}}
	}
	more := autoscaled(further(modelv1.AdditionalQuery{ServerAddress: "https://b", Query: "b", Target: resource.MustParse("2")}, modelv1.AdditionalQuery{Query: "c", Target: resource.MustParse("3")}))
	want3 := []any{metadata("http://prometheus:9090", "sum(a)", "1.5"), metadata("https://b", "b", "2"), metadata("http://prometheus:9090", "c", "3")}
	if diff := cmp.Diff(want3, scaledObjectOf(more).(*unstructured.Unstructured).Object["spec"].(map[string]any)["triggers"]); diff != "" {
		t.Errorf("further queries (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(scaled, child.Object["spec"]); diff != "" || child.GetName() != "web" || child.GetNamespace() != "team" || child.GetLabels()["a"] != "b" {
		t.Errorf("%v (-want +got):\n%s", child, diff)
	}
}

// random returns a metric, of which one in ten is valid.
func random(rnd *rand.Rand) autoscalingv2.MetricSpec {
	pick := func(of ...string) string { return of[rnd.IntN(len(of))] }
	one := func() *resource.Quantity {
		return []*resource.Quantity{nil, nil, nil, nil, new(resource.MustParse("1")), new(resource.MustParse("2")), new(resource.MustParse("3m")),
			new(resource.MustParse("0")), new(resource.MustParse("-1"))}[rnd.IntN(9)]
	}
	target := func() autoscalingv2.MetricTarget {
		return autoscalingv2.MetricTarget{
			Type:               autoscalingv2.MetricTargetType(pick("Utilization", "Value", "AverageValue", "Value", "AverageValue", "Utilization", "Value", "")),
			AverageUtilization: []*int32{nil, nil, nil, new(int32(50)), new(int32(0))}[rnd.IntN(5)], AverageValue: one(), Value: one(),
		}
	}
	metric := func() autoscalingv2.MetricIdentifier {
		return autoscalingv2.MetricIdentifier{Name: pick("requests", "requests", "requests", "a.b", "A_b", "requests", "a/b", "", "..", "a%b")}
	}
	m := autoscalingv2.MetricSpec{Type: autoscalingv2.MetricSourceType(pick("Resource", "ContainerResource", "Pods", "Object", "External", "Resource", "Pods", "Object", "External", "", "Other"))}
	has := func(kind autoscalingv2.MetricSourceType) bool { return (m.Type == kind) != (rnd.IntN(60) == 0) }
	if has(autoscalingv2.ResourceMetricSourceType) {
		m.Resource = &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceName(pick("cpu", "memory", "nvidia.com/gpu", "")), Target: target()}
	}
	if has(autoscalingv2.ContainerResourceMetricSourceType) {
		m.ContainerResource = &autoscalingv2.ContainerResourceMetricSource{
			Name: corev1.ResourceName(pick("cpu", "memory", "nvidia.com/gpu", "", "storage", "a b")), Container: pick("web", "web", "web", "A", ""), Target: target(),
		}
	}
	if has(autoscalingv2.PodsMetricSourceType) {
		m.Pods = &autoscalingv2.PodsMetricSource{Metric: metric(), Target: target()}
	}
	if has(autoscalingv2.ExternalMetricSourceType) {
		m.External = &autoscalingv2.ExternalMetricSource{Metric: metric(), Target: target()}
	}
	if has(autoscalingv2.ObjectMetricSourceType) {
		m.Object = &autoscalingv2.ObjectMetricSource{Metric: metric(), Target: target(), DescribedObject: autoscalingv2.CrossVersionObjectReference{
			APIVersion: pick("v1", "networking.k8s.io/v1", "", "a/b/c"), Kind: pick("Ingress", "Ingress", "Ingress", "", "a/b"), Name: pick("web", "web", "web", "", "."),
		}}
	}
	return m
}

// TestMetricsAreJudgedAsByKubernetes compares the rules of metrics with those of the API server,
// which the programs do not contain.
func TestMetricsAreJudgedAsByKubernetes(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(30, 2))
	options := kubernetes.HorizontalPodAutoscalerSpecValidationOptions{
		MinReplicasLowerBound:          1,
		ObjectMetricsValidationOptions: kubernetes.CrossVersionObjectReferenceValidationOptions{AllowEmptyAPIGroup: true},
	}
	var valid, invalid int
	for range 20000 {
		m := random(rnd)
		child := horizontalPodAutoscaler(autoscaled(func(a *modelv1.Autoscaling) { a.Metrics = []autoscalingv2.MetricSpec{m} })).(*autoscalingv2.HorizontalPodAutoscaler)
		stored := &internal.HorizontalPodAutoscaler{}
		if err := kubernetesv2.Convert_v2_HorizontalPodAutoscaler_To_autoscaling_HorizontalPodAutoscaler(child, stored, nil); err != nil {
			t.Fatal(err)
		}
		theirs := kubernetes.ValidateHorizontalPodAutoscaler(stored, options)
		ours := metrics(field.NewPath("spec", "metrics"), child.Spec.Metrics)
		if (len(theirs) == 0) != (len(ours) == 0) {
			t.Fatalf("%+v:\nKubernetes: %v\nhere: %v", m, theirs, ours)
		}
		if len(ours) == 0 {
			valid++
		} else {
			invalid++
		}
	}
	if valid < 1000 || invalid < 1000 {
		t.Errorf("%d valid and %d invalid metrics", valid, invalid)
	}
}

func TestReports(t *testing.T) {
	t.Parallel()
	scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	scaled := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "web"}}}
	if got := reportAutoscaler(scaler) + reportScaledObject(scaled); got != "" {
		t.Errorf("without a status: %q", got)
	}
	scaler.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{
		{Type: autoscalingv2.AbleToScale, Status: corev1.ConditionTrue},
		{Type: autoscalingv2.ScalingLimited, Status: corev1.ConditionFalse, Reason: "DesiredWithinRange"},
		{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse, Reason: "FailedGetResourceMetric", Message: "no metrics"},
	}
	if got, want := reportAutoscaler(scaler), `HorizontalPodAutoscaler "web": ScalingActive is False (FailedGetResourceMetric): no metrics`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	scaled.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "Active", "status": "False"},
		map[string]any{"type": "Ready", "status": "False", "reason": "TriggerError", "message": "no such host"},
	}}
	if got, want := reportScaledObject(scaled), `ScaledObject "web": Ready is False (TriggerError): no such host`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	ready := map[string]any{"type": "Ready", "status": "Unknown"}
	scaled.Object["status"] = map[string]any{"conditions": []any{ready}}
	if got := reportScaledObject(scaled); got != "" {
		t.Errorf("a new ScaledObject: %q", got)
	}
	ready["reason"], ready["message"] = "PartialTriggerError", "one of two"
	if got, want := reportScaledObject(scaled), `ScaledObject "web": Ready is Unknown (PartialTriggerError): one of two`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPercentages: a percentage needs a request, for which a limit is enough.
func TestPercentages(t *testing.T) {
	t.Parallel()
	one := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	for name, test := range map[string]struct {
		change    func(*modelv1.Autoscaling)
		resources corev1.ResourceRequirements
		warns     bool
	}{
		"the default without a request": {func(*modelv1.Autoscaling) {}, corev1.ResourceRequirements{}, true},
		"a request":                     {func(*modelv1.Autoscaling) {}, corev1.ResourceRequirements{Requests: one}, false},
		"a limit":                       {func(*modelv1.Autoscaling) {}, corev1.ResourceRequirements{Limits: one}, false},
		"of memory":                     {func(a *modelv1.Autoscaling) { a.Metrics = append(a.Metrics, utilization("memory", 50)) }, corev1.ResourceRequirements{Limits: one}, true},
		"KEDA":                          {byPrometheus, corev1.ResourceRequirements{}, false},
	} {
		o := autoscaled(test.change)
		o.Resources = test.resources
		got := Warn(field.NewPath("spec"), o)
		if (len(got) > 0) != test.warns {
			t.Errorf("%s: %q", name, got)
		}
		for _, warning := range got {
			if len(warning) > 120 {
				t.Errorf("%s: %q has more than 120 characters", name, warning)
			}
		}
	}
}

// replicasOf are the metadata of an object in whose manifest replicas is a number, and of one in
// which another request set it.
func replicasOf(manifest string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: manifest}}
}

func managedReplicas(operation metav1.ManagedFieldsOperationType, subresource string) metav1.ObjectMeta {
	return metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{
		Manager: "a", Operation: operation, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
	}}}
}

// TestReplicas: an update without the number keeps what the autoscaler has set, and one with
// another number has it.
func TestReplicas(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		meta               metav1.ObjectMeta
		now, old           bool
		sent, stored, want int32
	}{
		"no autoscaling":                              {metav1.ObjectMeta{}, false, false, 3, 2, 3},
		"removed by a client-side apply":              {replicasOf(`{"spec":{}}`), true, true, 1, 5, 5},
		"removed together with the first autoscaling": {replicasOf(`{"spec":{}}`), true, false, 1, 5, 5},
		"unchanged":              {managedReplicas(metav1.ManagedFieldsOperationUpdate, ""), true, true, 5, 5, 5},
		"autoscaling is removed": {metav1.ObjectMeta{}, false, true, 5, 5, 5},
		"autoscaling is removed, and a number is set": {replicasOf(`{"spec":{"replicas":1}}`), false, true, 1, 5, 1},
		"the first autoscaling beside a manifest's":   {replicasOf(`{"spec":{"replicas":5}}`), true, false, 5, 5, 5},
		"another number":      {managedReplicas(metav1.ManagedFieldsOperationUpdate, ""), true, true, 6, 5, 6},
		"a manifest's number": {replicasOf(`{"spec":{"replicas":3}}`), true, true, 3, 5, 3},
		"a manifest's 1":      {managedReplicas(metav1.ManagedFieldsOperationApply, ""), true, true, 1, 5, 1},
	} {
		replicas := &test.sent
		r := &Replicas{Meta: &test.meta, Now: test.now, Old: test.old, Sent: replicas, Stored: &test.stored}
		r.Keep(&replicas)
		if *replicas != test.want {
			t.Errorf("%s: %d", name, *replicas)
		}
	}
}

// TestWarnReplicas: a client that sets the number beside what sets it later has a warning, at the
// creation and with each update.
func TestWarnReplicas(t *testing.T) {
	t.Parallel()
	auto, scheduled := autoscaled(func(*modelv1.Autoscaling) {}), &Object{Children: &modelv1.Children{}, Scheduled: true}
	for name, test := range map[string]struct {
		meta   metav1.ObjectMeta
		of     *Object
		sent   int32
		stored *int32
		want   string
	}{
		"neither":                               {replicasOf(`{"spec":{"replicas":3}}`), &Object{Children: &modelv1.Children{}}, 3, nil, ""},
		"new, without":                          {replicasOf(`{"spec":{}}`), auto, 1, nil, ""},
		"new, 3":                                {metav1.ObjectMeta{}, auto, 3, nil, "spec.autoscaling"},
		"new, 1 in a manifest":                  {replicasOf(`{"spec":{"replicas":1}}`), auto, 1, nil, "spec.autoscaling"},
		"new, 1 applied by the server":          {managedReplicas(metav1.ManagedFieldsOperationApply, ""), scheduled, 1, nil, "spec.schedules"},
		"new, 3 beside schedules":               {metav1.ObjectMeta{}, scheduled, 3, nil, "spec.schedules"},
		"another number":                        {metav1.ObjectMeta{}, auto, 2, new(int32(5)), "spec.autoscaling"},
		"the same number, which a manifest has": {replicasOf(`{"spec":{"replicas":5}}`), auto, 5, new(int32(5)), "spec.autoscaling"},
		"the number of the autoscaler":          {managedReplicas(metav1.ManagedFieldsOperationUpdate, "scale"), auto, 5, new(int32(5)), ""},
		"as kubectl edit sends it":              {managedReplicas(metav1.ManagedFieldsOperationUpdate, ""), scheduled, 5, new(int32(5)), ""},
	} {
		o := *test.of
		o.Replicas = test.sent
		got := WarnReplicas(field.NewPath("spec", "replicas"), &test.meta, &o, test.stored)
		if (len(got) > 0) != (test.want != "") || len(got) > 0 && (!strings.Contains(got[0], test.want+" sets it") || len(got[0]) > 120) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestZeroReplicas: only KEDA starts from none.
func TestZeroReplicas(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change   func(*modelv1.Autoscaling)
		replicas int32
		sleeps   bool
	}{
		"one": {func(*modelv1.Autoscaling) {}, 1, false}, "none": {func(*modelv1.Autoscaling) {}, 0, true}, "none, KEDA": {byPrometheus, 0, false},
		"none, metrics instead of KEDA": {func(a *modelv1.Autoscaling) { a.Metrics = append(a.Metrics, utilization("memory", 50)) }, 0, true},
	} {
		o := autoscaled(test.change)
		o.Replicas, o.Resources.Limits = test.replicas, corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1")}
		warnings := Warn(field.NewPath("spec"), o)
		if note := autoscaling.Note(o); (note != "") != test.sleeps || (len(warnings) > 0) != test.sleeps || test.sleeps && len(warnings[0]) > 120 {
			t.Errorf("%s: %q, %q", name, note, warnings)
		}
	}
	without := &Object{Children: &modelv1.Children{}}
	if note := autoscaling.Note(without); note != "" {
		t.Errorf("without autoscaling: %q", note)
	}
}
