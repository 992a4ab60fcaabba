// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// query is a query in PromQL, and the name of each of its series, in which {{label}} stands for
// the value of a label.
type query struct{ expr, legend string }

// prometheus is the data source that is selected at the top of the dashboard.
var prometheus = datasource{Type: "prometheus", UID: "${datasource}"}

// newPanel returns a panel without options. Its unit is one of Grafana's.
func newPanel(kind, title, description, unit string, width int, queries []query) panel {
	p := panel{
		Type: kind, Title: title, Description: description, GridPos: gridPos{W: width},
		Datasource:  &prometheus,
		FieldConfig: &fieldConfig{Defaults: defaults{Unit: unit}, Overrides: []struct{}{}},
	}
	for i, q := range queries {
		p.Targets = append(p.Targets, target{
			RefID: string(rune('A' + i)), Datasource: prometheus, Expr: q.expr, LegendFormat: q.legend,
			Format: "time_series", Range: true,
		})
	}
	return p
}

// graph returns a panel of half the width, with a line for each series.
func graph(title, description, unit string, queries ...query) panel {
	p := newPanel("timeseries", title, description, unit, columns/2, queries)
	zero := 0
	p.FieldConfig.Defaults.Min = &zero
	p.FieldConfig.Defaults.Custom = &custom{
		DrawStyle: "line", FillOpacity: 10, LineWidth: 1, ShowPoints: "never", Stacking: stacking{Group: "A", Mode: "none"},
	}
	p.Options = timeseriesOptions{
		Legend:  legend{Calcs: []string{}, DisplayMode: "list", Placement: "bottom", ShowLegend: true},
		Tooltip: tooltip{Mode: "multi", Sort: "desc"},
	}
	return p
}

// stacked returns a graph of which the series are parts of a whole.
func stacked(title, description, unit string, queries ...query) panel {
	p := graph(title, description, unit, queries...)
	p.FieldConfig.Defaults.Custom.Stacking.Mode = "normal"
	p.FieldConfig.Defaults.Custom.FillOpacity = 40
	return p
}

// bars returns a graph of counts within each interval.
func bars(title, description, unit string, queries ...query) panel {
	p := stacked(title, description, unit, queries...)
	p.FieldConfig.Defaults.Custom.DrawStyle = "bars"
	p.FieldConfig.Defaults.Custom.FillOpacity = 80
	return p
}

// stat returns a panel a sixth as wide as the dashboard that shows the present value of a
// query, with a color from each threshold on.
func stat(title, description, unit string, q query, steps ...step) panel {
	p := newPanel("stat", title, description, unit, columns/6, []query{q})
	p.Targets[0].Instant, p.Targets[0].Range = true, false
	p.FieldConfig.Defaults.Thresholds = &thresholds{Mode: "absolute", Steps: steps}
	p.Options = statOptions{
		ColorMode: "value", GraphMode: "none", JustifyMode: "auto", Orientation: "auto", TextMode: "auto",
		WideLayout:    true,
		ReduceOptions: reduceOptions{Calcs: []string{"lastNotNull"}},
	}
	return p
}

// table returns a panel with a line for each series. The columns are labels and "Value", named as
// the pairs of a label and a title say.
func table(title, description, unit string, q query, names ...[2]string) panel {
	p := newPanel("table", title, description, unit, columns/2, []query{q})
	p.Targets[0].Instant, p.Targets[0].Range, p.Targets[0].Format = true, false, "table"
	p.Options = tableOptions{ShowHeader: true, CellHeight: "sm"}
	o := organize{ExcludeByName: map[string]bool{"Time": true}, RenameByName: map[string]string{}, IndexByName: map[string]int{}}
	for i, name := range names {
		o.RenameByName[name[0]], o.IndexByName[name[0]] = name[1], i
	}
	p.Transformations = []transformation{{ID: "organize", Options: o}}
	return p
}

// first is the color of all values below those of the other steps.
func first(color string) step { return step{Color: color} }

// from is the color from a value on.
func from(value int, color string) step { return step{Color: color, Value: &value} }
