// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/modelbox-operator/modelbox-operator/bench/report"
)

// testReport returns a report with numbers like those of a real run, and with details
// that must not be drawn.
func testReport() *report.Report {
	r := &report.Report{}
	for _, name := range []string{"raw", "ours"} {
		for i, n := range []int{10000, 100, 300, 1000, 3000} {
			at := ", " + strconv.Itoa(n)
			r.Record("growth", name, "time per object"+at, "ms", 12+float64(i))
			r.Record("growth", name, "API server + etcd CPU per object"+at, "ms", 20+float64(i))
			r.Record("growth", name, "own CPU per object"+at, "ms", 4+float64(i))
			r.Record("growth", name, "writes per object"+at, "", 3)
			r.Record("growth", name, "memory after"+at, "MiB", 40+float64(n)/50)
		}
	}
	r.Record("created", "ours", "own CPU per object", "ms", 4.3)
	return r
}

func drawAll(t *testing.T, r *report.Report) map[string][]byte {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "made", "by", "Draw")
	if err := Draw(r, dir); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, name := range []string{"growth-time.svg", "growth-cpu.svg", "growth-memory.svg"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = content
	}
	return files
}

// texts parses an SVG file and returns what is written in it.
func texts(t *testing.T, svg []byte) []string {
	t.Helper()
	var out []string
	root, inText := "", false
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if root == "" {
				root = token.Name.Space + " " + token.Name.Local
			}
			inText = token.Name.Local == "text"
		case xml.CharData:
			if inText {
				out = append(out, string(token))
			}
		case xml.EndElement:
			inText = false
		}
	}
	if root != "http://www.w3.org/2000/svg svg" {
		t.Errorf("the root is %q", root)
	}
	return out
}

func TestTextsOfFigures(t *testing.T) {
	files := drawAll(t, testReport())
	counts := []string{"100", "300", "1,000", "3,000", "10,000"}
	for name, want := range map[string][]string{
		"growth-time.svg": append([]string{"Time per object", "ms", "number of objects (logarithmic)", "ours", "raw client"}, counts...),
		"growth-cpu.svg": append([]string{
			"API server + etcd CPU per object", "Own CPU per object", "ms of CPU time", "number of objects (logarithmic)", "ours", "raw client",
		}, counts...),
		"growth-memory.svg": {"Memory of the controller after the burst", "VmRSS, MiB", "number of objects", "ours", "2,000", "10,000"},
	} {
		got := texts(t, files[name])
		for _, text := range want {
			if !slices.Contains(got, text) {
				t.Errorf("%s: there is no %q in %q", name, text, got)
			}
		}
		// No invalid number, and no font without fallbacks.
		if bytes.Contains(files[name], []byte("NaN")) || bytes.Contains(files[name], []byte("Inf")) {
			t.Errorf("%s: there are invalid numbers", name)
		}
		if !bytes.Contains(files[name], []byte("Arial,")) {
			t.Errorf("%s: the text has no fallback font", name)
		}
	}
}

func TestDrawIsDeterministic(t *testing.T) {
	first, second := drawAll(t, testReport()), drawAll(t, testReport())
	for name := range first {
		if !bytes.Equal(first[name], second[name]) {
			t.Errorf("%s: two runs differ", name)
		}
	}
}

func TestLegendOmitsImplementationsWithoutValues(t *testing.T) {
	r := testReport()
	r.Details = slices.DeleteFunc(r.Details, func(d report.Detail) bool { return d.Implementation == "raw" })
	got := texts(t, drawAll(t, r)["growth-time.svg"])
	if slices.Contains(got, "raw client") || !slices.Contains(got, "ours") {
		t.Errorf("the texts are %q", got)
	}
}

// A run with one number of objects, and in which all values are zero, still has axes.
func TestOnePointIsDrawn(t *testing.T) {
	r := &report.Report{}
	for _, quantity := range []string{"time per object, 1", "API server + etcd CPU per object, 1", "own CPU per object, 1", "memory after, 1"} {
		r.Record("growth", "ours", quantity, "", 0)
	}
	for name, svg := range drawAll(t, r) {
		if texts(t, svg); bytes.Contains(svg, []byte("NaN")) || bytes.Contains(svg, []byte("Inf")) {
			t.Errorf("%s: there are invalid numbers", name)
		}
	}
}

func TestDrawWithoutValuesFails(t *testing.T) {
	r := &report.Report{}
	r.Record("created", "ours", "own CPU per object", "ms", 4.3)
	if err := Draw(r, t.TempDir()); err == nil || !strings.Contains(err.Error(), `growth-time.svg: the report has no "time per object"`) {
		t.Errorf("error %v", err)
	}
}

func TestSeriesIsMediansByNumberOfObjects(t *testing.T) {
	r := &report.Report{}
	for _, value := range []float64{9, 1, 2} {
		r.Record("growth", "ours", "time per object, 1000", "ms", value)
	}
	r.Record("growth", "ours", "time per object, 300", "ms", 7)
	for _, name := range []string{"time per object", "time per object, all", "time per object, -1", "own time per object, 100"} {
		r.Record("growth", "ours", name, "ms", 5)
	}
	r.Record("growth", "raw", "time per object, 100", "ms", 5)
	r.Record("created", "ours", "time per object, 100", "ms", 5)
	want := plotter.XYs{{X: 300, Y: 7}, {X: 1000, Y: 2}}
	if got := series(r, "ours", "time per object"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func labels(ticks []gonum.Tick) []string {
	var out []string
	for _, tick := range ticks {
		out = append(out, tick.Label)
	}
	return out
}

func TestTicksTooCloseHaveNoLabel(t *testing.T) {
	all := panel{}.scaleX(plotter.XYs{{X: 100}, {X: 105}, {X: 1000}, {X: 100}})
	if got, want := labels(measuredTicks(all).Ticks(2, 3)), []string{"100", "", "1,000"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestEvenTicks(t *testing.T) {
	for high, want := range map[float64][]string{
		0.7:     {"0.0", "0.2", "0.4", "0.6"},
		1:       {"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"},
		6.9:     {"0", "2", "4", "6"},
		31:      {"0", "10", "20", "30"},
		250:     {"0", "50", "100", "150", "200", "250"},
		10300:   {"0", "2,000", "4,000", "6,000", "8,000", "10,000"},
		2500000: {"0", "500,000", "1,000,000", "1,500,000", "2,000,000", "2,500,000"},
	} {
		if got := labels(evenTicks{}.Ticks(0, high)); !slices.Equal(got, want) {
			t.Errorf("to %v: %q, want %q", high, got, want)
		}
	}
}
