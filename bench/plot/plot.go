// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plot draws how cost grows with the number of objects, as SVG files for
// docs/performance.md. The same report always makes the same bytes.
package plot

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/modelbox-operator/modelbox-operator/bench/report"
)

// figure is one file.
type figure struct {
	file string
	// panels are drawn next to each other.
	panels []panel
}

// panel shows one quantity of one or more implementations.
type panel struct {
	title string
	// quantity is its name in the report, and unit the label of its axis.
	quantity, unit  string
	implementations []string
	// linear selects a linear scale for the number of objects instead of a logarithmic
	// one, so that the slope is the cost of an object.
	linear bool
}

var figures = []figure{
	{"growth-time.svg", []panel{
		{title: "Time per object", quantity: "time per object", unit: "ms", implementations: []string{"ours", "raw"}},
	}},
	{"growth-cpu.svg", []panel{
		{title: "API server + etcd CPU per object", quantity: "API server + etcd CPU per object", unit: "ms of CPU time", implementations: []string{"ours", "raw"}},
		{title: "Own CPU per object", quantity: "own CPU per object", unit: "ms of CPU time", implementations: []string{"ours", "raw"}},
	}},
	{"growth-memory.svg", []panel{
		{title: "Memory of the controller after the burst", quantity: "memory after", unit: "VmRSS, MiB", implementations: []string{"ours"}, linear: true},
	}},
}

// A figure is 700 pixels wide and 380 high.
const (
	pixel  = vg.Inch / 96 // as in CSS
	width  = 700 * pixel
	height = 380 * pixel
	margin = 12 * pixel
)

// Draw writes all figures of a report into a directory.
func Draw(r *report.Report, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range figures {
		svg, err := f.draw(r)
		if err != nil {
			return fmt.Errorf("drawing %s: %w", f.file, err)
		}
		if err := os.WriteFile(filepath.Join(dir, f.file), svg, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (f figure) draw(r *report.Report) ([]byte, error) {
	svg := vgsvg.New(width, height)
	canvas := draw.New(svg)
	// Text is black, so the figure needs a background of its own on dark pages.
	canvas.SetColor(white)
	canvas.Fill(canvas.Path())
	tiles := draw.Tiles{Rows: 1, Cols: len(f.panels), PadX: 2 * margin, PadLeft: margin, PadRight: margin, PadTop: margin, PadBottom: margin}
	for i, panel := range f.panels {
		plot, err := panel.plot(r)
		if err != nil {
			return nil, err
		}
		plot.Draw(tiles.At(canvas, i, 0))
	}
	var out bytes.Buffer
	_, err := svg.WriteTo(&out)
	return withFallbacks(out.Bytes()), err
}

// withFallbacks adds fonts with the same metrics as Liberation Sans, which is usually
// installed on Linux only. Embedding it would add half a megabyte to each file.
func withFallbacks(svg []byte) []byte {
	return bytes.ReplaceAll(svg, []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arimo,Arial,Helvetica,sans-serif;"))
}
