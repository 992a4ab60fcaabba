// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// fieldsOf returns the paths of errors, sorted and without duplicates.
func fieldsOf(errs field.ErrorList) string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Field)
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " ")
}

func TestRulesOfRoutes(t *testing.T) {
	t.Parallel()
	tcp := []modelv1.Port{{Port: 80}}
	for name, test := range map[string]struct {
		ports  []modelv1.Port
		change func(*modelv1.Route)
		want   string
	}{
		"fine":                 {tcp, func(*modelv1.Route) {}, ""},
		"all fields":           {tcp, func(r *modelv1.Route) { r.Path, r.Gateway.Namespace, r.Gateway.Listener = "/v1/%20~a", "infra", "a.b" }, ""},
		"a wildcard":           {tcp, func(r *modelv1.Route) { r.Hosts = []modelv1.Host{"*.example.com"} }, ""},
		"no port":              {nil, func(*modelv1.Route) {}, "spec.route"},
		"a first port of UDP":  {[]modelv1.Port{{Port: 53, Protocol: corev1.ProtocolUDP}, {Port: 80}}, func(*modelv1.Route) {}, "spec.route"},
		"no host":              {tcp, func(r *modelv1.Route) { r.Hosts = nil }, "spec.route.hosts"},
		"17 hosts":             {tcp, func(r *modelv1.Route) { r.Hosts = slices.Repeat(r.Hosts, 17) }, "spec.route.hosts"},
		"a host that is none":  {tcp, func(r *modelv1.Route) { r.Hosts = append(r.Hosts, "a_b", "*", "a.*.b", "") }, "spec.route.hosts[1] spec.route.hosts[2] spec.route.hosts[3] spec.route.hosts[4]"},
		"a relative path":      {tcp, func(r *modelv1.Route) { r.Path = "v1" }, "spec.route.path"},
		"a dot":                {tcp, func(r *modelv1.Route) { r.Path = "/a/./b" }, "spec.route.path"},
		"a path of three dots": {tcp, func(r *modelv1.Route) { r.Path = "/a/..." }, ""},
		"an encoded slash":     {tcp, func(r *modelv1.Route) { r.Path = "/a%2fb" }, "spec.route.path"},
		"a long path":          {tcp, func(r *modelv1.Route) { r.Path = "/" + strings.Repeat("a", modelv1.MaxPath) }, "spec.route.path"},
		"no Gateway":           {tcp, func(r *modelv1.Route) { r.Gateway.Name = "" }, "spec.route.gateway.name"},
		"names that are none": {tcp, func(r *modelv1.Route) {
			r.Gateway = modelv1.GatewayReference{Name: "A", Namespace: "a.b", Listener: "-"}
		}, "spec.route.gateway.listener spec.route.gateway.name spec.route.gateway.namespace"},
		"two segments of a path": {tcp, func(r *modelv1.Route) { r.Path = "/a//b" }, "spec.route.path"},
		"a split":                {tcp, splits("a", 99, "b", 1), ""},
		"five of a split":        {tcp, splits("a", 1, "b", 1, "c", 1, "d", 1, "e", 1), "spec.route.split"},
		"more than all requests": {tcp, splits("a", 50, "b", 51), "spec.route.split"},
		"weights that are none":  {tcp, splits("a", 0, "b", -1, "c", 101, "d", 100), "spec.route.split[0].weight spec.route.split[1].weight spec.route.split[2].weight"},
		"the object itself":      {tcp, splits("a", 1, "web", 1), "spec.route.split[1].name"},
		"one Service twice":      {tcp, splits("a", 1, "a", 1), "spec.route.split[1].name"},
		"names of no Service":    {tcp, splits("", 1, "a.b", 1, "A", 1), "spec.route.split[0].name spec.route.split[1].name spec.route.split[2].name"},
	} {
		r := &modelv1.Route{Hosts: []modelv1.Host{"a.example.com"}, Gateway: modelv1.GatewayReference{Name: "public"}}
		test.change(r)
		o := &Object{Children: &modelv1.Children{Route: r}, Meta: metav1.ObjectMeta{Name: "web"}, Ports: test.ports}
		if errs := validateRoute(field.NewPath("spec", "route"), o); fieldsOf(errs) != test.want {
			t.Errorf("%s: %v, want errors of %q", name, errs, test.want)
		}
		if made := httpRoute(o) != nil; made != (len(test.ports) > 0) {
			t.Errorf("%s: there is a desired HTTPRoute: %t", name, made)
		}
	}
}

// splits sets split to pairs of a name and a weight.
func splits(pairs ...any) func(*modelv1.Route) {
	return func(r *modelv1.Route) {
		for pair := range slices.Chunk(pairs, 2) {
			r.Split = append(r.Split, modelv1.RouteShare{Name: pair[0].(string), Weight: int32(pair[1].(int))})
		}
	}
}

// TestSplit: all weights are 100 together, and each backend has the port of the object's own one.
func TestSplit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		split func(*modelv1.Route)
		want  map[string]int64
	}{
		"none":         {splits(), map[string]int64{"web": 1}},
		"one":          {splits("next", 10), map[string]int64{"web": 90, "next": 10}},
		"four":         {splits("a", 10, "b", 20, "c", 30, "d", 39), map[string]int64{"web": 1, "a": 10, "b": 20, "c": 30, "d": 39}},
		"all requests": {splits("next", 100), map[string]int64{"web": 0, "next": 100}},
	} {
		r := &modelv1.Route{Hosts: []modelv1.Host{"a.example.com"}}
		test.split(r)
		child := httpRoute(&Object{Children: &modelv1.Children{Route: r}, Meta: metav1.ObjectMeta{Name: "web"}, Ports: []modelv1.Port{{Port: 8080}, {Port: 81}}})
		rules, _, _ := unstructured.NestedSlice(child.(*unstructured.Unstructured).Object, "spec", "rules")
		got := map[string]int64{}
		for i, backend := range rules[0].(map[string]any)["backendRefs"].([]any) {
			b := backend.(map[string]any)
			got[b["name"].(string)] = b["weight"].(int64)
			if i == 0 && b["name"] != "web" || b["port"] != int64(8080) || b["kind"] != "Service" || b["group"] != "" || len(b) != 5 {
				t.Errorf("%s: backend %d is %v", name, i, b)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The route leads to the Service, whatever its name.
func TestRouteToAServiceOfAnotherName(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]*modelv1.ServiceOptions{"web": nil, "front": {Name: "front"}} {
		o := &Object{Children: &modelv1.Children{Route: &modelv1.Route{}, Service: options}, Ports: []modelv1.Port{{Port: 80}}, Meta: metav1.ObjectMeta{Name: "web"}}
		route, _ := json.Marshal(httpRoute(o))
		if !strings.Contains(string(route), `"kind":"Service","name":"`+name+`"`) || !strings.Contains(string(route), `"metadata":{"name":"web"}`) {
			t.Errorf("got %s", route)
		}
		o.Route.Split = []modelv1.RouteShare{{Name: name, Weight: 10}}
		if errs := validateSplit(nil, o.ServiceName("web"), o.Route.Split); len(errs) != 1 {
			t.Errorf("a share of its own Service: %v", errs)
		}
	}
}

func TestRulesOfMonitoring(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ports []modelv1.Port
		in    modelv1.Monitoring
		want  string
	}{
		"defaults":         {[]modelv1.Port{{Port: 80}}, modelv1.Monitoring{}, ""},
		"a number":         {nil, modelv1.Monitoring{Port: new(intstr.FromInt32(9090)), Interval: "1h30m5s"}, ""},
		"a name":           {nil, modelv1.Monitoring{Port: new(intstr.FromString("metrics")), Path: "/m", Interval: "24h"}, ""},
		"no port":          {nil, modelv1.Monitoring{Port: new(intstr.FromString(""))}, "spec.monitoring.port"},
		"not a port":       {nil, modelv1.Monitoring{Port: new(intstr.FromInt32(0))}, "spec.monitoring.port"},
		"not a name":       {nil, modelv1.Monitoring{Port: new(intstr.FromString("80"))}, "spec.monitoring.port"},
		"not a path":       {[]modelv1.Port{{Port: 80}}, modelv1.Monitoring{Path: "/a?b"}, "spec.monitoring.path"},
		"a short interval": {[]modelv1.Port{{Port: 80}}, modelv1.Monitoring{Interval: "0s"}, "spec.monitoring.interval"},
		"a long interval":  {[]modelv1.Port{{Port: 80}}, modelv1.Monitoring{Interval: "24h1s"}, "spec.monitoring.interval"},
		"in milliseconds":  {[]modelv1.Port{{Port: 80}}, modelv1.Monitoring{Interval: "1500ms"}, "spec.monitoring.interval"},
		"in another order": {[]modelv1.Port{{Port: 80}}, modelv1.Monitoring{Interval: "5s1m"}, "spec.monitoring.interval"},
	} {
		o := &Object{Children: &modelv1.Children{Monitoring: &test.in}, Ports: test.ports}
		if errs := validateMonitoring(field.NewPath("spec", "monitoring"), o); fieldsOf(errs) != test.want {
			t.Errorf("%s: %v, want errors of %q", name, errs, test.want)
		}
	}
}

// What Gateways say: only conditions for the current spec count, and each refusal is reported.
func TestStatusOfRoutes(t *testing.T) {
	t.Parallel()
	condition := func(kind, value string, generation int64) any {
		return map[string]any{"type": kind, "status": value, "reason": "R", "message": "M", "observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z"}
	}
	for name, test := range map[string]struct {
		parents [][]any
		report  string
		url     string
	}{
		"no answer":            {nil, "no Gateway has accepted it yet", ""},
		"accepted":             {[][]any{{condition("Accepted", "True", 2), condition("ResolvedRefs", "True", 2)}}, "", "http://a.example.com/"},
		"of an older spec":     {[][]any{{condition("Accepted", "True", 1)}}, "no Gateway has accepted it yet", ""},
		"refused":              {[][]any{{condition("Accepted", "False", 2)}}, "Accepted is False (R): M", ""},
		"refused before":       {[][]any{{condition("Accepted", "False", 1)}}, "no Gateway has accepted it yet", ""},
		"no backend":           {[][]any{{condition("Accepted", "True", 2), condition("ResolvedRefs", "False", 2)}}, "ResolvedRefs is False (R): M", "http://a.example.com/"},
		"one of two":           {[][]any{{condition("Accepted", "True", 2)}, {condition("Accepted", "False", 2)}}, "Accepted is False (R): M", "http://a.example.com/"},
		"another condition":    {[][]any{{condition("Accepted", "True", 2), condition("Other", "False", 2)}}, "", "http://a.example.com/"},
		"not known yet":        {[][]any{{condition("Accepted", "Unknown", 2)}}, "no Gateway has accepted it yet", ""},
		"of any spec":          {[][]any{{condition("Accepted", "True", 0)}}, "sets no observedGeneration", "http://a.example.com/"},
		"refused, of any spec": {[][]any{{condition("Accepted", "False", 0)}}, "Accepted is False (R): M", ""},
		"without a condition":  {[][]any{{}}, "no Gateway has accepted it yet", ""},
	} {
		o := &Object{Children: &modelv1.Children{Route: &modelv1.Route{Hosts: []modelv1.Host{"*.example.com", "a.example.com"}}}, Meta: metav1.ObjectMeta{Name: "web"}}
		live := &unstructured.Unstructured{Object: map[string]any{}}
		live.SetGeneration(2)
		parents := []any{}
		for _, conditions := range test.parents {
			parents = append(parents, map[string]any{"conditions": conditions})
		}
		live.Object["status"] = map[string]any{"parents": parents}
		status := modelv1.WorkloadStatus{}
		routeStatus(o, live, &status)
		if report := reportRoute(live); (report == "") != (test.report == "") || !strings.Contains(report, test.report) || status.URL != test.url {
			t.Errorf("%s: report %q, url %q; want %q, %q", name, report, status.URL, test.report, test.url)
		}
	}
}
