// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const committed = "../../config/monitoring/dashboard/modelbox-operator.json"

func TestTheDashboardIsCommittedAsItIsGenerated(t *testing.T) {
	want, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := write(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("run make generate; %s (-committed +generated):\n%s", committed, diff)
	}
}

// Grafana moves panels that overlap, so the dashboard would not look as it is laid out here.
func TestPanelsDoNotOverlap(t *testing.T) {
	t.Parallel()
	panels := layOut(rows)
	ids := map[int]bool{}
	for i, a := range panels {
		at := a.GridPos
		if ids[a.ID] || a.ID == 0 || at.W <= 0 || at.H <= 0 || at.X < 0 || at.X+at.W > columns {
			t.Errorf("panel %q has the ID %d and the place %+v", a.Title, a.ID, at)
		}
		ids[a.ID] = true
		for _, b := range panels[:i] {
			if overlap(a.GridPos, b.GridPos) {
				t.Errorf("panels %q and %q overlap", b.Title, a.Title)
			}
		}
	}
}

func overlap(a, b gridPos) bool {
	return a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
}

// Each panel says what it shows, and asks the data source that is selected.
func TestPanelsAreComplete(t *testing.T) {
	t.Parallel()
	titles := map[string]bool{}
	for _, p := range layOut(rows) {
		if titles[p.Title] || p.Title == "" {
			t.Errorf("there are two panels %q, or it has no title", p.Title)
		}
		titles[p.Title] = true
		if p.Type == "row" {
			continue
		}
		if !strings.HasSuffix(p.Description, ".") || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
			t.Errorf("panel %q has the description %q, the unit %q and %d queries", p.Title, p.Description, p.FieldConfig.Defaults.Unit, len(p.Targets))
		}
		checkTargets(t, p)
	}
}

func checkTargets(t *testing.T, p panel) {
	t.Helper()
	names := map[string]bool{}
	for _, q := range p.Targets {
		if names[q.RefID] || q.Datasource != prometheus || q.Instant == q.Range {
			t.Errorf("panel %q has the query %+v", p.Title, q)
		}
		names[q.RefID] = true
		if p.Type == "timeseries" && q.LegendFormat == "" {
			t.Errorf("panel %q has a query without a legend: %s", p.Title, q.Expr)
		}
	}
}
