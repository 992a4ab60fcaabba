// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"maps"
	"regexp"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/modelbox-operator/modelbox-operator/internal/version"
)

func TestVersionIsSemantic(t *testing.T) {
	// With v in front, all three numbers, and no build metadata, which the tag of an image cannot
	// have: semver.org, without leading zeros.
	semantic := regexp.MustCompile(`^v(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)
	if !semantic.MatchString(version.Version) {
		t.Errorf("VERSION contains %q, want a semantic version such as v1.2.3 or v1.2.3-rc.1", version.Version)
	}
}

func TestCollector(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(version.Collector("webhook"))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	metric := families[0].GetMetric()[0]
	got := map[string]string{}
	for _, label := range metric.GetLabel() {
		got[label.GetName()] = label.GetValue()
	}
	want := map[string]string{"program": "webhook", "version": version.Version}
	if families[0].GetName() != "modelbox_build_info" || metric.GetGauge().GetValue() != 1 || !maps.Equal(got, want) {
		t.Errorf("got %v, want modelbox_build_info with %v and value 1", families[0], want)
	}
}
