// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

// measuredTicks are ticks at the measured numbers of objects, on a logarithmic axis. A
// number that is too close to the one before it has a tick without a label.
type measuredTicks plotter.XYs

// Ticks implements gonum's Ticker.
func (m measuredTicks) Ticks(low, high float64) []gonum.Tick {
	const apart = 0.1 // of the axis
	var ticks []gonum.Tick
	labelled := math.Inf(-1)
	for _, x := range slices.Compact(slices.Sorted(m.values())) {
		tick := gonum.Tick{Value: x}
		if x-labelled >= apart*(high-low) {
			tick.Label, labelled = formatNumber(math.Pow(10, x), 0), x
		}
		ticks = append(ticks, tick)
	}
	return ticks
}

func (m measuredTicks) values() iter.Seq[float64] {
	return func(yield func(float64) bool) {
		for _, point := range m {
			if !yield(point.X) {
				return
			}
		}
	}
}

// evenTicks are three to six ticks of a linear axis that starts at zero, at multiples of
// 1, 2 or 5 times a power of ten. (gonum's own ticks may have only two labels.)
type evenTicks struct{}

// Ticks implements gonum's Ticker.
func (evenTicks) Ticks(_, high float64) []gonum.Tick {
	const most = 6
	power := math.Floor(math.Log10(high / most))
	step := 0.0
	for _, times := range []float64{1, 2, 5, 10} {
		if step = times * math.Pow(10, power); high/step < most {
			break
		}
	}
	var ticks []gonum.Tick
	for i := 0.0; i*step <= high; i++ {
		ticks = append(ticks, gonum.Tick{Value: i * step, Label: formatNumber(i*step, max(0, -int(power)))})
	}
	return ticks
}

// formatNumber formats a number with commas between thousands, as in 10,000.
func formatNumber(n float64, decimals int) string {
	text := strconv.FormatFloat(n, 'f', decimals, 64)
	whole, _, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
