// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/plotter"

	"github.com/modelbox-operator/modelbox-operator/bench/report"
)

// group is the measurement that is drawn.
const group = "growth"

// series returns the values of a quantity of an implementation: x is the number of
// objects, y the median of the rounds.
func series(r *report.Report, implementation, quantity string) plotter.XYs {
	var points plotter.XYs
	for _, d := range r.Details {
		if n, ok := objects(d.Quantity, quantity); ok && d.Group == group && d.Implementation == implementation {
			points = append(points, plotter.XY{X: n, Y: report.Summarize(d.Values).Median})
		}
	}
	slices.SortFunc(points, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
	return points
}

// objects returns the number of objects at the end of a name such as "time per object,
// 3000".
func objects(name, quantity string) (float64, bool) {
	digits, ok := strings.CutPrefix(name, quantity+", ")
	n, err := strconv.Atoi(digits)
	return float64(n), ok && err == nil && n > 0
}
