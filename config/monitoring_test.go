// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	_ "sigs.k8s.io/controller-runtime/pkg/webhook" // It registers the metrics of a webhook.

	// It registers the metrics of the controller, including those of controller-runtime.
	_ "github.com/modelbox-operator/modelbox-operator/controller/eru"
	"github.com/modelbox-operator/modelbox-operator/internal/version"
	_ "github.com/modelbox-operator/modelbox-operator/webhook/sizesfile"
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
	runbook := readFile(t, "../docs/alerts.md")
	eachAlert(t, func(t *testing.T, a alert) {
		for _, name := range []string{"summary", "description", "runbook_url"} {
			if a.Annotations[name] == "" {
				t.Errorf("it has no %s", name)
			}
		}
		if want := "/docs/alerts.md#" + strings.ToLower(a.Alert); !strings.HasSuffix(a.Annotations["runbook_url"], want) {
			t.Errorf("its runbook_url is %q, want one that ends in %s", a.Annotations["runbook_url"], want)
		}
		if !strings.Contains(runbook, "\n## "+a.Alert+"\n") {
			t.Errorf("docs/alerts.md has no heading %q", "## "+a.Alert)
		}
		if !slices.Contains([]string{"critical", "warning"}, a.Labels["severity"]) {
			t.Errorf("its severity is %q", a.Labels["severity"])
		}
	})
}

// An alert or a panel for a metric that does not exist would show nothing, for ever.
func TestQueriesAreAboutMetricsThatExist(t *testing.T) {
	known := registered(t)
	for where, expr := range queries(t) {
		used := selector.FindAllStringSubmatch(quoted.ReplaceAllString(expr, ""), -1)
		if len(used) == 0 {
			t.Errorf("%s: no metric was found in %s", where, expr)
		}
		allowed := slices.Clone(ofTarget)
		for _, s := range used {
			has, ok := known[s[1]]
			if !ok {
				t.Errorf("%s: metric %s is not registered", where, s[1])
			}
			for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
				if !slices.Contains(has, m[1]) && !slices.Contains(ofTarget, m[1]) {
					t.Errorf("%s: %s has no label %s, only %v", where, s[1], m[1], has)
				}
			}
			allowed = append(allowed, has...)
		}
		for _, by := range grouping.FindAllStringSubmatch(expr, -1) {
			for _, label := range word.FindAllString(by[2], -1) {
				if !slices.Contains(allowed, label) {
					t.Errorf("%s: no metric has the label %s in %s", where, label, expr)
				}
			}
		}
		// Without a selector of its job, a metric is that of any program.
		rest := grouping.ReplaceAllString(selector.ReplaceAllString(ranges.ReplaceAllString(quoted.ReplaceAllString(expr, ""), ""), ""), "")
		for _, name := range word.FindAllString(rest, -1) {
			if _, ok := known[name]; ok {
				t.Errorf("%s: %s has no selector in %s", where, name, expr)
			}
		}
	}
	for _, name := range regexp.MustCompile("`((?:controller_runtime|certwatcher|workqueue|leader_election|rest_client|modelbox)_[a-z_]+)`").FindAllStringSubmatch(readFile(t, "../docs/monitoring.md")+readFile(t, "../docs/alerts.md"), -1) {
		if _, ok := known[name[1]]; !ok {
			t.Errorf("the pages name the metric %s, which is not registered", name[1])
		}
	}
}

// queries returns the queries of the alerts and of the dashboard.
func queries(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, rule := range each[*prometheusRule](monitoring(t)) {
		for _, group := range rule.Spec.Groups {
			for _, a := range group.Rules {
				out["alert "+a.Alert] = a.Expr
			}
		}
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	if err := json.Unmarshal([]byte(readFile(t, "monitoring/dashboard/modelbox-operator.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			out["panel "+p.Title+" "+target.RefID] = target.Expr
		}
	}
	if len(out) < 30 {
		t.Fatalf("only %d queries were found", len(out))
	}
	return out
}

// ofTarget are the labels that Prometheus adds to each series of a ServiceMonitor. If the
// series has a label with the same name, that one gets the prefix exported_.
var ofTarget = []string{"job", "namespace", "service", "pod", "container", "endpoint", "instance"}

var described = regexp.MustCompile(`fqName: "([^"]*)".*constLabels: \{([^}]*)\}.*variableLabels: \{([^}]*)\}`)

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
		labels := strings.FieldsFunc(parts[3], func(r rune) bool { return r == ',' })
		for i, label := range labels {
			if slices.Contains(ofTarget, label) {
				labels[i] = "exported_" + label
			}
		}
		for _, constant := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(parts[2], -1) {
			labels = append(labels, constant[1])
		}
		out[parts[1]] = labels
		if strings.HasSuffix(parts[1], "_seconds") { // A description does not tell a histogram.
			out[parts[1]+"_bucket"] = append(slices.Clone(labels), "le")
		}
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

var jobs = regexp.MustCompile(`job="([^"]*)"`)

// The jobs in the selectors of queries are those of the ServiceMonitors.
func TestQueriesAreAboutJobsThatExist(t *testing.T) {
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
	for where, expr := range queries(t) {
		used := jobs.FindAllStringSubmatch(expr, -1)
		if len(used) != len(selector.FindAllString(quoted.ReplaceAllString(expr, ""), -1)) {
			t.Errorf("%s: a metric is selected without a job in %s", where, expr)
		}
		for _, job := range used {
			if !existing[job[1]] {
				t.Errorf("%s: no ServiceMonitor has the job %q, only %v", where, job[1], existing)
			}
		}
	}
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
