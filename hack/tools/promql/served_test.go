// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package promql

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	// These packages register the metrics of the two processes, including those of
	// controller-runtime.
	_ "github.com/modelbox-operator/modelbox-operator/controller/eru"
	"github.com/modelbox-operator/modelbox-operator/internal/version"
	_ "github.com/modelbox-operator/modelbox-operator/webhook/admission"
	_ "github.com/modelbox-operator/modelbox-operator/webhook/server"
)

// series are the series of a metric.
type series struct {
	// labels are those of the metric itself.
	labels []string
	// job is the only process that serves it, empty if both may.
	job string
}

// ofTarget are the labels that Prometheus adds to each series of a ServiceMonitor. A label of
// the metric with the same name gets the prefix exported_.
var ofTarget = []string{"job", "namespace", "service", "pod", "container", "endpoint", "instance"}

func (s series) has(label string) bool {
	return slices.Contains(s.labels, label) || slices.Contains(ofTarget, label)
}

var described = regexp.MustCompile(`fqName: "([^"]*)".*constLabels: \{([^}]*)\}.*variableLabels: \{([^}]*)\}`)

// served returns the series that the processes serve, by the name of their metric. It reads the
// descriptions, because a metric with labels has no series until it is used.
func served(t *testing.T) map[string]series {
	t.Helper()
	all := prometheus.NewRegistry()
	all.MustRegister(metrics.Registry.(prometheus.Collector), version.Collector("test"))
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		all.Describe(descriptions)
	}()
	out := map[string]series{}
	for d := range descriptions {
		parts := described.FindStringSubmatch(d.String())
		if parts == nil {
			t.Fatalf("this test cannot parse %s", d)
		}
		name := parts[1]
		s := series{labels: append(constant(parts[2]), variable(parts[3])...), job: jobOf(name)}
		out[name] = s
		if !slices.Contains(histograms, name) {
			continue
		}
		out[name+"_sum"], out[name+"_count"] = s, s
		out[name+"_bucket"] = series{labels: append(slices.Clone(s.labels), "le"), job: s.job}
	}
	return out
}

// histograms are the histograms that queries may use: a description does not tell its type.
var histograms = []string{
	"modelbox_admission_duration_seconds", "modelbox_eru_restart_lateness_seconds", "controller_runtime_reconcile_time_seconds",
}

// jobOf returns the process that a metric of the operator is from.
func jobOf(name string) string {
	switch {
	case strings.HasPrefix(name, "modelbox_admission_"):
		return "modelbox-webhook"
	case strings.HasPrefix(name, "modelbox_build_"):
		return ""
	case strings.HasPrefix(name, "modelbox_"), strings.HasPrefix(name, "controller_runtime_reconcile_"):
		return "modelbox-controller"
	}
	return ""
}

// constant returns the names in the constant labels of a description, such as a="1",b="2".
func constant(text string) []string {
	var out []string
	for _, found := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(text, -1) {
		out = append(out, found[1])
	}
	return out
}

// variable returns the names in the variable labels of a description as Prometheus stores them.
func variable(text string) []string {
	var out []string
	for _, label := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		if slices.Contains(ofTarget, label) {
			label = "exported_" + label
		}
		out = append(out, label)
	}
	return out
}

// Otherwise a query of its buckets would be held to be right.
func TestHistogramsAreServed(t *testing.T) {
	known := served(t)
	for _, name := range histograms {
		if _, ok := known[name]; !ok {
			t.Errorf("no process serves %s", name)
		}
	}
}
