// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package promql

import (
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/config/monitoring"
)

// The groups of a PrometheusRule are those of a file of rules, which "promtool check rules" parses
// in the same way.
func TestRulesAreValid(t *testing.T) {
	var rule struct {
		Spec map[string]any `json:"spec"`
	}
	if err := yaml.Unmarshal(monitoring.Rules, &rule); err != nil {
		t.Fatal(err)
	}
	file, err := yaml.Marshal(rule.Spec)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(file, false, model.UTF8Validation, parser.NewParser(parser.Options{}))
	for _, err := range errs {
		t.Error(err)
	}
	if len(errs) == 0 && len(groups.Groups) == 0 {
		t.Error("there are no rules")
	}
}
