// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"cmp"
	"fmt"
	"image/color"
	"math"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/modelbox-operator/modelbox-operator/bench/report"
)

var (
	white = color.Gray{Y: 255}
	faint = color.Gray{Y: 218}
)

// style is the style of an implementation's line. Lines differ in their dashes and
// marks, and in colours that colour-blind readers can distinguish (Okabe and Ito, 2008).
type style struct {
	legend string
	color  color.Color
	dashes []vg.Length
	glyph  draw.GlyphDrawer
}

var styles = map[string]style{
	"ours": {"ours", color.RGBA{R: 0x00, G: 0x72, B: 0xB2, A: 255}, nil, draw.CircleGlyph{}},
	"raw":  {"raw client", color.RGBA{R: 0xD5, G: 0x5E, B: 0x00, A: 255}, []vg.Length{5, 3}, draw.BoxGlyph{}},
}

func (p panel) plot(r *report.Report) (*gonum.Plot, error) {
	plot := gonum.New()
	plot.Title.Text = p.title
	plot.X.Label.Text, plot.Y.Label.Text = "number of objects", p.unit
	plot.Legend.Top, plot.Legend.Left = true, true
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = faint, faint
	plot.Add(grid)
	var all plotter.XYs
	for _, implementation := range p.implementations {
		points := p.scaleX(series(r, implementation, p.quantity))
		if err := addLine(plot, styles[implementation], points); err != nil {
			return nil, fmt.Errorf("%s of %s: %w", p.quantity, implementation, err)
		}
		all = append(all, points...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the report has no %q of %q", p.quantity, p.implementations)
	}
	p.scale(plot, all)
	setFonts(plot)
	return plot, nil
}

// addLine adds an implementation's line if it was measured.
func addLine(plot *gonum.Plot, s style, points plotter.XYs) error {
	if len(points) == 0 {
		return nil
	}
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.LineStyle = draw.LineStyle{Color: s.color, Width: vg.Points(1.75), Dashes: s.dashes}
	dots.GlyphStyle = draw.GlyphStyle{Color: s.color, Radius: vg.Points(3), Shape: s.glyph}
	plot.Add(line, dots)
	plot.Legend.Add(s.legend, line, dots)
	return nil
}

// scale sets the axes. The axis of the cost starts at zero, so that twice the height is
// twice the cost, and has space for the legend at the top.
func (p panel) scale(plot *gonum.Plot, all plotter.XYs) {
	const headroom = 1.25
	few, many, _, most := plotter.XYRange(all)
	plot.Y.Min, plot.Y.Max = 0, cmp.Or(headroom*most, 1)
	plot.Y.Tick.Marker = evenTicks{}
	plot.X.Padding, plot.Y.Padding = 0, 0
	if p.linear {
		plot.X.Min, plot.X.Max = 0, 1.03*many
		plot.X.Tick.Marker = evenTicks{}
		return
	}
	plot.X.Label.Text += " (logarithmic)"
	// The margin also makes a range of a single number of objects.
	const margin = 0.06
	plot.X.Min, plot.X.Max = few-margin, many+margin
	plot.X.Tick.Marker = measuredTicks(all)
}

// scaleX sets the x coordinates of points: the number of objects, or its decimal
// logarithm. (gonum's own logarithmic scale reserves space for the axis label at the
// wrong place, and leaves it empty on the right.)
func (p panel) scaleX(points plotter.XYs) plotter.XYs {
	if !p.linear {
		for i := range points {
			points[i].X = math.Log10(points[i].X)
		}
	}
	return points
}

// setFonts sets fonts and distances.
func setFonts(plot *gonum.Plot) {
	for _, text := range []struct {
		font *font.Font
		size vg.Length
	}{
		{&plot.Title.TextStyle.Font, 12},
		{&plot.X.Label.TextStyle.Font, 10.5}, {&plot.Y.Label.TextStyle.Font, 10.5},
		{&plot.X.Tick.Label.Font, 10}, {&plot.Y.Tick.Label.Font, 10},
		{&plot.Legend.TextStyle.Font, 10.5},
	} {
		*text.font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: text.size}
	}
	plot.Title.Padding, plot.X.Label.Padding, plot.Y.Label.Padding = 8, 4, 4
	plot.Legend.ThumbnailWidth, plot.Legend.Padding = 28, 2
	plot.Legend.XOffs, plot.Legend.YOffs = 8, -2
}
