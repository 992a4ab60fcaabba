// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report compares measured values with budgets, and prints them.
package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Row is a budget and the values that are compared with it.
type Row struct {
	// Group is the name of the measurement, and Name describes the quantity.
	Group string `json:"group"`
	Name  string `json:"name"`
	// Unit is the unit of all numbers, "" for a ratio.
	Unit string `json:"unit,omitempty"`
	// Limit is the budget: the maximum, or the minimum if AtLeast is set.
	Limit   float64 `json:"limit"`
	AtLeast bool    `json:"atLeast,omitempty"`
	// NoBudget marks a row without a budget: Limit has no meaning, and Result is empty if
	// there are values.
	NoBudget bool `json:"noBudget,omitempty"`
	// Values are the measured values, one for each round.
	Values []float64 `json:"values"`
	// Note is an explanation for the reader.
	Note string `json:"note,omitempty"`

	Summary
	Result string `json:"result"`
}

// Summary is a summary of values.
type Summary struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Summarize returns the summary of values, which is zero if there are none.
func Summarize(values []float64) Summary {
	if len(values) == 0 {
		return Summary{}
	}
	return Summary{Median: Quantile(values, 0.5), Min: slices.Min(values), Max: slices.Max(values)}
}

// Quantile returns a quantile of values. The median of an even number of values is the
// mean of the middle two. Other quantiles that fall between two values are the higher
// one, so that a p99 is never lower than a measured value.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if q == 0.5 && n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[min(max(int(math.Ceil(q*float64(n)))-1, 0), n-1)]
}

// Evaluate returns the row with its summary and result.
func (r Row) Evaluate() Row {
	r.Summary = Summarize(r.Values)
	r.Result = r.result()
	return r
}

func (r Row) result() string {
	if len(r.Values) == 0 {
		return "NOT MEASURED"
	}
	if r.NoBudget {
		return ""
	}
	short := r.Median - r.Limit
	if r.AtLeast {
		short = -short
	}
	if short <= 0 {
		return "PASS"
	}
	if r.Limit == 0 {
		return "SHORT by " + number(short, r.Unit)
	}
	return fmt.Sprintf("SHORT by %s (%.0f %%)", number(short, r.Unit), 100*short/r.Limit)
}

// Ratios divides the value of each round by the value of another quantity in the same
// round, so that changes in the speed of the machine cancel out.
func Ratios(of, by []float64) []float64 {
	var out []float64
	for i := range min(len(of), len(by)) {
		if by[i] != 0 {
			out = append(out, of[i]/by[i])
		}
	}
	return out
}

func number(v float64, unit string) string {
	digits := 2
	switch size := math.Abs(v); {
	case size >= 100:
		digits = 0
	case size >= 10:
		digits = 1
	case size < 0.1 && size > 0:
		digits = 3
	}
	text := fmt.Sprintf("%.*f", digits, v)
	return cmp.Or(map[bool]string{true: text + " " + unit}[unit != ""], text)
}
