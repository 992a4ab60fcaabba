// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// The types have the fields of Grafana's dashboard JSON model that the dashboard uses:
// https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/

// schemaVersion is the version of the JSON model of Grafana 10.4. Later releases migrate it.
const schemaVersion = 39

type dashboard struct {
	UID           string      `json:"uid"`
	Title         string      `json:"title"`
	Description   string      `json:"description"`
	Tags          []string    `json:"tags"`
	SchemaVersion int         `json:"schemaVersion"`
	Editable      bool        `json:"editable"`
	GraphTooltip  int         `json:"graphTooltip"`
	Refresh       string      `json:"refresh"`
	Time          timeRange   `json:"time"`
	Timezone      string      `json:"timezone"`
	Annotations   annotations `json:"annotations"`
	Templating    templating  `json:"templating"`
	Links         []link      `json:"links"`
	Panels        []panel     `json:"panels"`
}

type timeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type annotations struct {
	List []struct{} `json:"list"`
}

type templating struct {
	List []variable `json:"list"`
}

type variable struct {
	Name  string `json:"name"`
	Label string `json:"label"`
	Type  string `json:"type"`
	Query string `json:"query"`
}

type link struct {
	Title       string   `json:"title"`
	Type        string   `json:"type"`
	URL         string   `json:"url"`
	Icon        string   `json:"icon"`
	Tooltip     string   `json:"tooltip"`
	Tags        []string `json:"tags"`
	AsDropdown  bool     `json:"asDropdown"`
	IncludeVars bool     `json:"includeVars"`
	KeepTime    bool     `json:"keepTime"`
	TargetBlank bool     `json:"targetBlank"`
}

type panel struct {
	ID              int              `json:"id"`
	Type            string           `json:"type"`
	Title           string           `json:"title"`
	Description     string           `json:"description,omitempty"`
	GridPos         gridPos          `json:"gridPos"`
	Datasource      *datasource      `json:"datasource,omitempty"`
	FieldConfig     *fieldConfig     `json:"fieldConfig,omitempty"`
	Options         any              `json:"options,omitempty"`
	Targets         []target         `json:"targets,omitempty"`
	Transformations []transformation `json:"transformations,omitempty"`
	// Collapsed and Panels are for rows only.
	Collapsed *bool   `json:"collapsed,omitempty"`
	Panels    []panel `json:"panels,omitzero"`
}

// gridPos is a place in Grafana's grid, which is 24 columns wide.
type gridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type target struct {
	RefID        string     `json:"refId"`
	Datasource   datasource `json:"datasource"`
	Expr         string     `json:"expr"`
	LegendFormat string     `json:"legendFormat,omitempty"`
	Format       string     `json:"format"`
	Instant      bool       `json:"instant"`
	Range        bool       `json:"range"`
}

type fieldConfig struct {
	Defaults  defaults   `json:"defaults"`
	Overrides []struct{} `json:"overrides"`
}

type defaults struct {
	Unit       string      `json:"unit"`
	Min        *int        `json:"min,omitempty"`
	Decimals   *int        `json:"decimals,omitempty"`
	Thresholds *thresholds `json:"thresholds,omitempty"`
	Custom     *custom     `json:"custom,omitempty"`
}

type thresholds struct {
	Mode  string `json:"mode"`
	Steps []step `json:"steps"`
}

// step is a color from a value on; the first step has none.
type step struct {
	Color string `json:"color"`
	Value *int   `json:"value"`
}

// custom are the options of a time series that are the same for all of its fields.
type custom struct {
	DrawStyle   string   `json:"drawStyle"`
	FillOpacity int      `json:"fillOpacity"`
	LineWidth   int      `json:"lineWidth"`
	ShowPoints  string   `json:"showPoints"`
	Stacking    stacking `json:"stacking"`
}

type stacking struct {
	Group string `json:"group"`
	Mode  string `json:"mode"`
}

type statOptions struct {
	ColorMode     string        `json:"colorMode"`
	GraphMode     string        `json:"graphMode"`
	JustifyMode   string        `json:"justifyMode"`
	Orientation   string        `json:"orientation"`
	TextMode      string        `json:"textMode"`
	WideLayout    bool          `json:"wideLayout"`
	ReduceOptions reduceOptions `json:"reduceOptions"`
	// The change since the beginning of the time range.
	ShowPercentChange bool `json:"showPercentChange"`
}

type reduceOptions struct {
	Calcs  []string `json:"calcs"`
	Fields string   `json:"fields"`
	Values bool     `json:"values"`
}

type timeseriesOptions struct {
	Legend  legend  `json:"legend"`
	Tooltip tooltip `json:"tooltip"`
}

type legend struct {
	Calcs       []string `json:"calcs"`
	DisplayMode string   `json:"displayMode"`
	Placement   string   `json:"placement"`
	ShowLegend  bool     `json:"showLegend"`
}

type tooltip struct {
	Mode string `json:"mode"`
	Sort string `json:"sort"`
}

type tableOptions struct {
	FrameIndex int    `json:"frameIndex"`
	ShowHeader bool   `json:"showHeader"`
	CellHeight string `json:"cellHeight"`
}

type transformation struct {
	ID      string   `json:"id"`
	Options organize `json:"options"`
}

// organize are the options of the transformation of that name, which hides and renames columns.
type organize struct {
	ExcludeByName map[string]bool   `json:"excludeByName"`
	RenameByName  map[string]string `json:"renameByName"`
	IndexByName   map[string]int    `json:"indexByName"`
}
