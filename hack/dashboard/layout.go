// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// columns is the width of Grafana's grid.
const columns = 24

// row is a row of the dashboard: a heading with panels of one height below it, from left to
// right, as many as fit beside each other.
type row struct {
	title  string
	height int
	panels []panel
}

// newDashboard returns the dashboard that shows rows, one below the other.
func newDashboard(rows []row) dashboard {
	return dashboard{
		UID:           "modelbox-operator",
		Title:         "ModelBox Operator",
		Description:   "Admissions, reconciles and restarts of the ModelBox Operator.",
		Tags:          []string{"kubernetes", "modelbox-operator"},
		SchemaVersion: schemaVersion,
		Editable:      true,
		GraphTooltip:  1, // The crosshair is in all panels.
		Refresh:       "1m",
		Time:          timeRange{From: "now-6h", To: "now"},
		Timezone:      "browser",
		Annotations:   annotations{List: []struct{}{}},
		Templating:    templating{List: []variable{{Name: "datasource", Label: "Data source", Type: "datasource", Query: "prometheus"}}},
		Links: []link{{
			Title: "Alerts, reasons and metrics", Type: "link", Icon: "doc", Tags: []string{}, TargetBlank: true,
			URL: "https://github.com/modelbox-operator/modelbox-operator/blob/main/docs/troubleshooting.md",
		}},
		Panels: layOut(rows),
	}
}

// layOut gives the panels of rows their places and IDs, and puts a heading above each row.
func layOut(rows []row) []panel {
	var out []panel
	add := func(p panel, at gridPos) {
		p.ID, p.GridPos = len(out)+1, at
		out = append(out, p)
	}
	y := 0
	for _, r := range rows {
		expanded := false
		add(panel{Type: "row", Title: r.title, Collapsed: &expanded, Panels: []panel{}}, gridPos{H: 1, W: columns, Y: y})
		y++
		x := 0
		for _, p := range r.panels {
			if x+p.GridPos.W > columns {
				x, y = 0, y+r.height
			}
			add(p, gridPos{H: r.height, W: p.GridPos.W, X: x, Y: y})
			x += p.GridPos.W
		}
		y += r.height
	}
	return out
}
