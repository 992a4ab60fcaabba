// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package promql

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/config/monitoring"
)

// query is a query, and the name of each series in its result, in which {{label}} stands for the
// value of a label.
type query struct{ expr, legend string }

// queries returns the queries of the alerts and of the dashboard, by what they are for.
func queries(t *testing.T) map[string]query {
	t.Helper()
	all := alerts(t)
	maps.Copy(all, panels(t))
	return all
}

func alerts(t *testing.T) map[string]query {
	t.Helper()
	var rules struct {
		Spec struct {
			Groups []struct {
				Rules []struct{ Alert, Expr string }
			}
		}
	}
	decode(t, monitoring.Rules, &rules)
	out := map[string]query{}
	for _, group := range rules.Spec.Groups {
		for _, rule := range group.Rules {
			out["alert "+rule.Alert] = query{expr: rule.Expr}
		}
	}
	if len(out) == 0 {
		t.Fatal("there are no alerts")
	}
	return out
}

// panels returns the queries of the dashboard with a value for Grafana's variable.
func panels(t *testing.T) map[string]query {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr, LegendFormat string }
		}
	}
	decode(t, monitoring.Dashboard, &dashboard)
	out := map[string]query{}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			expr := strings.ReplaceAll(target.Expr, "$__rate_interval", "2m")
			out[fmt.Sprintf("panel %s, query %s", panel.Title, target.RefID)] = query{expr, target.LegendFormat}
		}
	}
	if len(out) == 0 {
		t.Fatal("the dashboard has no queries")
	}
	return out
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	text, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// Each query is valid, and selects by labels that series of the processes have, of a job that a
// ServiceMonitor sets.
func TestQueriesSelectSeriesThatExist(t *testing.T) {
	known := served(t)
	for name, q := range queries(t) {
		t.Run(name, func(t *testing.T) {
			expr := parse(t, q.expr)
			selectors := 0
			parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
				if s, ok := node.(*parser.VectorSelector); ok {
					selectors++
					checkSelector(t, known, s)
				}
				return nil
			})
			if selectors == 0 {
				t.Errorf("%s selects nothing", q.expr)
			}
		})
	}
}

func parse(t *testing.T, text string) parser.Expr {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return expr
}

// programs are the values of the label job, the names of the two Deployments.
var programs = []string{"modelbox-webhook", "modelbox-controller"}

func checkSelector(t *testing.T, known map[string]series, s *parser.VectorSelector) {
	t.Helper()
	metric, ok := known[s.Name]
	if !ok {
		t.Errorf("no process serves %q", s.Name)
		return
	}
	job := ""
	for _, m := range s.LabelMatchers {
		if m.Name == "job" && m.Type == labels.MatchEqual {
			job = m.Value
		}
		if m.Name != model.MetricNameLabel && !metric.has(m.Name) {
			t.Errorf("%s has no label %s, only %v", s.Name, m.Name, metric.labels)
		}
	}
	if !slices.Contains(programs, job) {
		t.Errorf("%s does not select a job", s)
	}
	if metric.job != "" && metric.job != job {
		t.Errorf("%s is served by %s only", s, metric.job)
	}
}

// Each label that series are grouped by, or matched on, exists in all that is grouped.
func TestQueriesGroupByLabelsThatExist(t *testing.T) {
	known := served(t)
	for name, q := range queries(t) {
		t.Run(name, func(t *testing.T) {
			parser.Inspect(parse(t, q.expr), func(node parser.Node, _ []parser.Node) error {
				switch e := node.(type) {
				case *parser.AggregateExpr:
					checkLabels(t, known, e.Expr, e.Grouping)
				case *parser.BinaryExpr:
					if e.VectorMatching != nil {
						checkLabels(t, known, e.LHS, e.VectorMatching.MatchingLabels)
						checkLabels(t, known, e.RHS, e.VectorMatching.MatchingLabels)
					}
				}
				return nil
			})
		})
	}
}

// checkLabels checks that the result of an expression has labels.
func checkLabels(t *testing.T, known map[string]series, expr parser.Expr, names []string) {
	t.Helper()
	switch e := expr.(type) {
	case *parser.VectorSelector:
		for _, name := range names {
			if metric := known[e.Name]; !metric.has(name) {
				t.Errorf("%s has no label %s, only %v", e.Name, name, metric.labels)
			}
		}
		return
	case *parser.AggregateExpr:
		if !keepsLabels(e) {
			for _, name := range names {
				if !slices.Contains(e.Grouping, name) {
					t.Errorf("%s has no label %s", e, name)
				}
			}
			return
		}
	case *parser.BinaryExpr:
		if e.Op == parser.LAND || e.Op == parser.LUNLESS { // The result is of the left side.
			checkLabels(t, known, e.LHS, names)
			return
		}
	}
	for child := range parser.ChildrenIter(expr) {
		if operand, ok := child.(parser.Expr); ok {
			checkLabels(t, known, operand, names)
		}
	}
}

// keepsLabels returns whether an aggregation returns some of its series as they are.
func keepsLabels(e *parser.AggregateExpr) bool {
	return e.Op == parser.TOPK || e.Op == parser.BOTTOMK
}

var placeholder = regexp.MustCompile(`\{\{(\w+)\}\}`)

// A label that the result does not have would be an empty text in a legend.
func TestLegendsUseLabelsOfTheResult(t *testing.T) {
	for name, q := range panels(t) {
		has, all := labelsOf(parse(t, q.expr))
		for _, label := range placeholder.FindAllStringSubmatch(q.legend, -1) {
			if !all && !slices.Contains(has, label[1]) {
				t.Errorf("%s: the legend %q has %s, and the result only %v", name, q.legend, label[1], has)
			}
		}
	}
}

// labelsOf returns the labels of the result of a query, or that it has all labels of what it
// selects.
func labelsOf(expr parser.Expr) (names []string, all bool) {
	switch e := expr.(type) {
	case *parser.AggregateExpr:
		if keepsLabels(e) {
			return labelsOf(e.Expr)
		}
		return e.Grouping, false
	case *parser.BinaryExpr:
		if _, scalar := e.LHS.(*parser.NumberLiteral); scalar {
			return labelsOf(e.RHS)
		}
		return labelsOf(e.LHS)
	case *parser.ParenExpr:
		return labelsOf(e.Expr)
	case *parser.Call:
		names, all = labelsOf(e.Args[len(e.Args)-1])
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return e.Func.Name == "histogram_quantile" && name == "le"
		}), all
	}
	return nil, true
}
