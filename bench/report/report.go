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

// Report is all that a run has measured.
type Report struct {
	Started time.Time         `json:"started"`
	Ended   time.Time         `json:"ended"`
	Machine Machine           `json:"machine"`
	Options map[string]string `json:"options"`
	Rows    []Row             `json:"rows"`
	// Details are what rows were made from: group, contestant, quantity.
	Details []Detail `json:"details"`
	// Failures are measurements that could not be made, and why.
	Failures []string `json:"failures,omitempty"`
}

// Detail is a quantity of a contestant.
type Detail struct {
	Group      string    `json:"group"`
	Contestant string    `json:"contestant"`
	Quantity   string    `json:"quantity"`
	Unit       string    `json:"unit,omitempty"`
	Values     []float64 `json:"values"`
}

// Add adds a row.
func (r *Report) Add(row Row) { r.Rows = append(r.Rows, row.Judge()) }

// Note adds a value to a quantity of a contestant.
func (r *Report) Note(group, contestant, quantity, unit string, value float64) {
	for i := range r.Details {
		if d := &r.Details[i]; d.Group == group && d.Contestant == contestant && d.Quantity == quantity {
			d.Values = append(d.Values, value)
			return
		}
	}
	r.Details = append(r.Details, Detail{group, contestant, quantity, unit, []float64{value}})
}

// Of is what was noted of a quantity of a contestant.
func (r *Report) Of(group, contestant, quantity string) []float64 {
	for _, d := range r.Details {
		if d.Group == group && d.Contestant == contestant && d.Quantity == quantity {
			return d.Values
		}
	}
	return nil
}

// Fail notes that a measurement could not be made.
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

// Read reads a report that an earlier run has written.
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

// Print prints the budgets, then what each contestant was measured to need.
func (r *Report) Print(out io.Writer) {
	fmt.Fprintf(out, "\n%s\n\n", r.Machine)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "BUDGET\tLIMIT\tMEASURED\tSPREAD\tVERDICT")
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
		return []string{r.Name, r.limit(), "", "", r.Verdict}
	}
	return []string{
		r.Name, r.limit(), number(r.Median, r.Unit),
		fmt.Sprintf("%s .. %s (%d)", number(r.Min, ""), number(r.Max, ""), len(r.Values)), r.Verdict,
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
			fmt.Fprintf(table, "  %s\t%s\t%s\t(%s .. %s)\n", d.Contestant, d.Quantity, number(s.Median, d.Unit), number(s.Min, ""), number(s.Max, ""))
		}
		_ = table.Flush()
	}
}
