// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	// These packages register the metrics of the two processes, including those of
	// controller-runtime.
	_ "github.com/modelbox-operator/modelbox-operator/controller/eru"
	"github.com/modelbox-operator/modelbox-operator/internal/version"
	_ "github.com/modelbox-operator/modelbox-operator/webhook/admission"
	_ "github.com/modelbox-operator/modelbox-operator/webhook/server"
)

// serviceMonitor has the fields of a monitoring.coreos.com/v1 ServiceMonitor that are used.
type serviceMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		JobLabel  string               `json:"jobLabel"`
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port            string     `json:"port"`
			Scheme          string     `json:"scheme"`
			BearerTokenFile string     `json:"bearerTokenFile"`
			TLSConfig       *tlsConfig `json:"tlsConfig"`
		} `json:"endpoints"`
	} `json:"spec"`
}

// tlsConfig is how Prometheus verifies an endpoint.
type tlsConfig struct {
	ServerName string `json:"serverName"`
	CA         struct {
		Secret corev1.SecretKeySelector `json:"secret"`
	} `json:"ca"`
}

// prometheusRule has the fields of a monitoring.coreos.com/v1 PrometheusRule that are used.
type prometheusRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Groups []struct {
			Name  string  `json:"name"`
			Rules []alert `json:"rules"`
		} `json:"groups"`
	} `json:"spec"`
}

type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// eachAlert runs a test for each alert.
func eachAlert(t *testing.T, test func(*testing.T, alert)) {
	t.Helper()
	seen := map[string]bool{}
	for _, rule := range each[*prometheusRule](monitoring(t)) {
		for _, group := range rule.Spec.Groups {
			for _, a := range group.Rules {
				if seen[a.Alert] {
					t.Errorf("alert %s is duplicate", a.Alert)
				}
				seen[a.Alert] = true
				t.Run(a.Alert, func(t *testing.T) { test(t, a) })
			}
		}
	}
	if len(seen) == 0 {
		t.Error("there are no alerts")
	}
}

func TestAlertsHaveRunbooks(t *testing.T) {
	runbook, err := os.ReadFile("../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	eachAlert(t, func(t *testing.T, a alert) {
		for _, name := range []string{"summary", "description", "runbook_url"} {
			if a.Annotations[name] == "" {
				t.Errorf("it has no %s", name)
			}
		}
		if want := "/docs/troubleshooting.md#" + strings.ToLower(a.Alert); !strings.HasSuffix(a.Annotations["runbook_url"], want) {
			t.Errorf("its runbook_url is %q, want one that ends in %s", a.Annotations["runbook_url"], want)
		}
		if !strings.Contains(string(runbook), "\n### "+a.Alert+"\n") {
			t.Errorf("docs/troubleshooting.md has no heading %q", "### "+a.Alert)
		}
		if !slices.Contains([]string{"critical", "warning"}, a.Labels["severity"]) {
			t.Errorf("its severity is %q", a.Labels["severity"])
		}
	})
}

// An alert for a metric that does not exist would never fire.
func TestAlertsAreAboutMetricsThatExist(t *testing.T) {
	known := registered(t)
	eachAlert(t, func(t *testing.T, a alert) {
		used := metricsOf(a.Expr)
		if len(used) == 0 {
			t.Errorf("no metric was found in %s", a.Expr)
		}
		for name, with := range used {
			has, ok := known[name]
			if !ok {
				t.Errorf("metric %s is not registered", name)
			}
			for _, label := range with {
				if !slices.Contains(has, label) && !slices.Contains(ofTarget, label) {
					t.Errorf("%s has no label %s, only %v", name, label, has)
				}
			}
		}
	})
}

// ofTarget are the labels that Prometheus adds to each series of a ServiceMonitor. If the
// series has a label with the same name, that one gets the prefix exported_.
var ofTarget = []string{"job", "namespace", "service", "pod", "container", "endpoint", "instance"}

var described = regexp.MustCompile(`fqName: "([^"]*)".*variableLabels: \{([^}]*)\}`)

// registered returns the labels of all metrics that the processes register, by name. It
// uses the descriptions, because a metric with labels has no series until it is used.
func registered(t *testing.T) map[string][]string {
	t.Helper()
	all := prometheus.NewRegistry()
	all.MustRegister(metrics.Registry.(prometheus.Collector), version.Collector("test"))
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		all.Describe(descriptions)
	}()
	out := map[string][]string{}
	for d := range descriptions {
		parts := described.FindStringSubmatch(d.String())
		if parts == nil {
			t.Fatalf("this test cannot parse %s", d)
		}
		labels := strings.Split(parts[2], ",")
		for i, label := range labels {
			if slices.Contains(ofTarget, label) {
				labels[i] = "exported_" + label
			}
		}
		out[parts[1]] = labels
	}
	return out
}

var (
	quoted   = regexp.MustCompile(`"[^"]*"`)
	selector = regexp.MustCompile(`([a-z_]+)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`([a-z_]+)\s*[=!]`)
	ranges   = regexp.MustCompile(`\[[^]]*\]`)
	grouping = regexp.MustCompile(`\b(by|on)\s*\(([^)]*)\)`)
	word     = regexp.MustCompile(`[a-z_:]+`)
)

// metricsOf returns the metrics in an expression, each with the labels in its selectors
// and groupings. It parses only the part of PromQL that the alerts use, in which every
// metric has a selector.
func metricsOf(expr string) map[string][]string {
	expr = ranges.ReplaceAllString(quoted.ReplaceAllString(expr, ""), "")
	var grouped []string
	for _, by := range grouping.FindAllStringSubmatch(expr, -1) {
		grouped = append(grouped, word.FindAllString(by[2], -1)...)
	}
	out := map[string][]string{}
	for _, s := range selector.FindAllStringSubmatch(expr, -1) {
		out[s[1]] = nil
		for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
			out[s[1]] = append(out[s[1]], m[1])
		}
	}
	if len(out) == 1 {
		for name := range out {
			out[name] = append(out[name], grouped...)
		}
	}
	// A word without a selector that is not a keyword is a metric too.
	for _, name := range word.FindAllString(grouping.ReplaceAllString(selector.ReplaceAllString(expr, ""), ""), -1) {
		if !slices.Contains(keywords, name) {
			out[name] = nil
		}
	}
	return out
}

// keywords are the keywords and functions of PromQL that the alerts use.
var keywords = []string{"absent", "and", "delta", "increase", "max", "on", "or", "rate", "sum", "time"}

var jobs = regexp.MustCompile(`job="([^"]*)"`)

// The jobs in the selectors of alerts are those of the ServiceMonitors.
func TestAlertsAreAboutJobsThatExist(t *testing.T) {
	objects := monitoring(t)
	existing := map[string]bool{}
	for _, m := range each[*serviceMonitor](objects) {
		service := monitored(t, objects, m)
		existing[service.Labels[m.Spec.JobLabel]] = true
		for _, endpoint := range m.Spec.Endpoints {
			if !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == endpoint.Port }) {
				t.Errorf("ServiceMonitor %s has an endpoint for port %q, which Service %s does not have", m.Name, endpoint.Port, service.Name)
			}
		}
		if len(m.Spec.Endpoints) == 0 {
			t.Errorf("ServiceMonitor %s has no endpoints", m.Name)
		}
	}
	eachAlert(t, func(t *testing.T, a alert) {
		used := jobs.FindAllStringSubmatch(a.Expr, -1)
		if len(used) != len(selector.FindAllString(a.Expr, -1)) {
			t.Errorf("a metric is selected without a job in %s", a.Expr)
		}
		for _, job := range used {
			if !existing[job[1]] {
				t.Errorf("no ServiceMonitor has the job %q, only %v", job[1], existing)
			}
		}
	})
}

// monitored returns the one Service that a ServiceMonitor selects among all Services.
func monitored(t *testing.T, objects []object, m *serviceMonitor) *corev1.Service {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(&m.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	var selected []*corev1.Service
	for _, service := range each[*corev1.Service](slices.Concat(install(t), objects)) {
		if s.Matches(labels.Set(service.Labels)) {
			selected = append(selected, service)
		}
	}
	if len(selected) != 1 {
		t.Fatalf("ServiceMonitor %s selects %d Services, want 1", m.Name, len(selected))
	}
	return selected[0]
}
