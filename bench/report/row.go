// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report holds what was measured against what was asked for, and prints it.
package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Row is one budget and what was measured for it.
type Row struct {
	// Group is the measurement that it comes from, Name what it is about.
	Group string `json:"group"`
	Name  string `json:"name"`
	// Unit is the unit of all numbers, "" for a ratio.
	Unit string `json:"unit,omitempty"`
	// Limit is the budget: the most that is allowed, or the least if AtLeast is set.
	Limit   float64 `json:"limit"`
	AtLeast bool    `json:"atLeast,omitempty"`
	// NoBudget says that nothing was asked for: Limit means nothing, and there is no
	// verdict on what was measured.
	NoBudget bool `json:"noBudget,omitempty"`
	// Values are what was measured, one for each round.
	Values []float64 `json:"values"`
	// Note says what the reader should know of it.
	Note string `json:"note,omitempty"`

	Summary
	Verdict string `json:"verdict"`
}

// Summary sums values up.
type Summary struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Summarize sums values up; of none it makes zeros.
func Summarize(values []float64) Summary {
	if len(values) == 0 {
		return Summary{}
	}
	return Summary{Median: Quantile(values, 0.5), Min: slices.Min(values), Max: slices.Max(values)}
}

// Quantile is a quantile of values, the middle of two where it falls between them
// and q is a half, and otherwise the next one up: a p99 is never better than what
// was seen.
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

// Judge fills in the summary and the verdict.
func (r Row) Judge() Row {
	r.Summary = Summarize(r.Values)
	r.Verdict = r.verdict()
	return r
}

func (r Row) verdict() string {
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

// Ratios divides the values of each round by those of the same round of another:
// what the machine was doing then falls out.
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
