// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report holds all results of a run.
type Report struct {
	Started time.Time         `json:"started"`
	Ended   time.Time         `json:"ended"`
	Machine Machine           `json:"machine"`
	Options map[string]string `json:"options"`
	Rows    []Row             `json:"rows"`
	// Details are the measured values that the rows are calculated from.
	Details []Detail `json:"details"`
	// Failures are the measurements that failed, with the error.
	Failures []string `json:"failures,omitempty"`
}

// Detail is a quantity of an implementation, with one value for each round. Its field
// names in JSON stay as they are, because -replot reads reports of earlier runs.
type Detail struct {
	Group          string    `json:"group"`
	Implementation string    `json:"contestant"`
	Quantity       string    `json:"quantity"`
	Unit           string    `json:"unit,omitempty"`
	Values         []float64 `json:"values"`
}

// Add adds a row.
func (r *Report) Add(row Row) { r.Rows = append(r.Rows, row.Evaluate()) }

// Record adds a value to a quantity of an implementation.
func (r *Report) Record(group, implementation, quantity, unit string, value float64) {
	for i := range r.Details {
		if d := &r.Details[i]; d.Group == group && d.Implementation == implementation && d.Quantity == quantity {
			d.Values = append(d.Values, value)
			return
		}
	}
	r.Details = append(r.Details, Detail{group, implementation, quantity, unit, []float64{value}})
}

// Values returns the recorded values of a quantity of an implementation.
func (r *Report) Values(group, implementation, quantity string) []float64 {
	for _, d := range r.Details {
		if d.Group == group && d.Implementation == implementation && d.Quantity == quantity {
			return d.Values
		}
	}
	return nil
}

// Fail records that a measurement failed.
func (r *Report) Fail(what string, err error) {
	r.Failures = append(r.Failures, fmt.Sprintf("%s: %v", what, err))
}

// Write writes the report as JSON.
func (r *Report) Write(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// Read reads the report of an earlier run.
func Read(path string) (*Report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &Report{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("reading the report %s: %w", path, err)
	}
	return r, nil
}

// Print prints the budgets, and then the values of each implementation.
func (r *Report) Print(out io.Writer) {
	fmt.Fprintf(out, "\n%s\n\n", r.Machine)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "BUDGET\tLIMIT\tMEASURED\tSPREAD\tRESULT")
	for _, row := range r.Rows {
		fmt.Fprintln(table, strings.Join(row.cells(), "\t"))
	}
	_ = table.Flush()
	for _, row := range r.Rows {
		if row.Note != "" {
			fmt.Fprintf(out, "  %s: %s\n", row.Name, row.Note)
		}
	}
	r.printDetails(out)
	for _, failure := range r.Failures {
		fmt.Fprintf(out, "\nNOT MEASURED: %s\n", failure)
	}
}

func (r Row) cells() []string {
	if len(r.Values) == 0 {
		return []string{r.Name, r.limit(), "", "", r.Result}
	}
	return []string{
		r.Name, r.limit(), number(r.Median, r.Unit),
		fmt.Sprintf("%s .. %s (%d)", number(r.Min, ""), number(r.Max, ""), len(r.Values)), r.Result,
	}
}

func (r Row) limit() string {
	switch {
	case r.NoBudget:
		return "none"
	case r.AtLeast:
		return ">= " + number(r.Limit, r.Unit)
	default:
		return "<= " + number(r.Limit, r.Unit)
	}
}

func (r *Report) printDetails(out io.Writer) {
	var groups []string
	for _, d := range r.Details {
		if !slices.Contains(groups, d.Group) {
			groups = append(groups, d.Group)
		}
	}
	for _, group := range groups {
		fmt.Fprintf(out, "\n%s: medians (least .. most) of the rounds\n", group)
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, d := range r.Details {
			if d.Group != group {
				continue
			}
			s := Summarize(d.Values)
			fmt.Fprintf(table, "  %s\t%s\t%s\t(%s .. %s)\n", d.Implementation, d.Quantity, number(s.Median, d.Unit), number(s.Min, ""), number(s.Max, ""))
		}
		_ = table.Flush()
	}
}
