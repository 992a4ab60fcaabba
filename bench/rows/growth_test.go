// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"flag"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelbox-operator/modelbox-operator/bench/controlplane"
	"github.com/modelbox-operator/modelbox-operator/bench/implementation"
	"github.com/modelbox-operator/modelbox-operator/bench/plot"
	"github.com/modelbox-operator/modelbox-operator/bench/report"
)

func TestCountsAreAFlag(t *testing.T) {
	for _, tc := range []struct {
		text string
		want Counts
		err  string
	}{
		{text: "100,300,1000", want: Counts{100, 300, 1000}},
		{text: "20, 50", want: Counts{20, 50}},
		{text: "7", want: Counts{7}},
		{text: "", err: `"" is not a number of objects`},
		{text: "100,", err: `"" is not a number of objects`},
		{text: "100,many", err: `"many" is not a number of objects`},
		{text: "1.5", err: `"1.5" is not a number of objects`},
		{text: "0,100", err: `"0" is not a number of objects`},
		{text: "-5", err: `"-5" is not a number of objects`},
		{text: "300,100", err: "100 comes after 300"},
		{text: "100,100", err: "100 comes after 100"},
	} {
		counts := Counts{1, 2}
		flags := flag.NewFlagSet("bench", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		flags.Var(&counts, "growth", "")
		err := flags.Parse([]string{"-growth=" + tc.text})
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q: error %v, want %q", tc.text, err, tc.err)
			}
			if !slices.Equal(counts, Counts{1, 2}) {
				t.Errorf("%q: changed the counts to %v", tc.text, counts)
			}
			continue
		}
		if err != nil || !slices.Equal(counts, tc.want) {
			t.Errorf("%q: %v, %v, want %v", tc.text, counts, err, tc.want)
		}
	}
}

func TestCountsString(t *testing.T) {
	counts := Counts{100, 300, 10000}
	if counts.String() != "100,300,10000" {
		t.Errorf("wrote %q", counts.String())
	}
	if none := (&Counts{}).String(); none != "" {
		t.Errorf("wrote %q for none", none)
	}
}

// measured returns a bench with the results of two runs of each implementation: 100
// objects in a second, and 1,000 in twenty seconds.
func measured() *Bench {
	b := &Bench{Report: &report.Report{}, Growth: Counts{100, 1000}}
	for _, name := range []string{"ours", "raw"} {
		s := sample{took: time.Second, server: 2 * time.Second, own: time.Second / 2, requests: controlplane.Requests{Writes: 200, Status: 100, Gets: 50}, memory: 30 << 20}
		s.recordGrowth(b.Report, "growth", name, 100)
		s = sample{took: 20 * time.Second, server: 60 * time.Second, own: 5 * time.Second, requests: controlplane.Requests{Writes: 2000, Status: 1000}, memory: 60 << 20}
		s.recordGrowth(b.Report, "growth", name, 1000)
	}
	return b
}

func TestGrowthIsRecordedForEachObject(t *testing.T) {
	b := measured()
	for quantity, want := range map[string]float64{
		"time per object, 100":                  10,
		"time per object, 1000":                 20,
		"API server + etcd CPU per object, 100": 20,
		"own CPU per object, 1000":              5,
		"writes per object, 100":                3,
		"uncached reads per object, 100":        0.5,
		"memory after, 1000":                    60,
	} {
		if got := b.Values("growth", "ours", quantity); !slices.Equal(got, []float64{want}) {
			t.Errorf("%s: %v, want %v", quantity, got, want)
		}
	}
}

func TestGrowthIsARatioWithoutABudget(t *testing.T) {
	b := measured()
	b.addGrowthRows("growth", []*implementation.Implementation{implementation.Ours(), implementation.Raw()})
	want := []struct {
		name   string
		median float64
	}{
		{"time per object, 1000 / 100: ours", 2},
		{"time per object, 1000 / 100: raw", 2},
		{"API server + etcd CPU per object, 1000 / 100: ours", 3},
		{"API server + etcd CPU per object, 1000 / 100: raw", 3},
		{"own CPU per object, 1000 / 100: ours", 1},
		{"own CPU per object, 1000 / 100: raw", 1},
	}
	if len(b.Rows) != len(want) {
		t.Fatalf("%d rows, want %d", len(b.Rows), len(want))
	}
	for i, row := range b.Rows {
		if row.Name != want[i].name || row.Median != want[i].median || !row.NoBudget || row.Result != "" {
			t.Errorf("row %d: %+v, want %+v", i, row, want[i])
		}
	}
}

func TestOneCountDoesNotGrow(t *testing.T) {
	b := measured()
	b.Growth = Counts{100}
	if b.addGrowthRows("growth", []*implementation.Implementation{implementation.Ours()}); len(b.Rows) != 0 {
		t.Errorf("rows %+v", b.Rows)
	}
}

func TestTimeoutGrowsWithTheObjects(t *testing.T) {
	b := &Bench{Objects: 1000, Timeout: 10 * time.Minute}
	if few := b.with(100); few.Objects != 100 || few.Timeout != 10*time.Minute {
		t.Errorf("%s for %d", few.Timeout, few.Objects)
	}
	if many := b.with(10000); many.Objects != 10000 || many.Timeout != 2000*time.Second {
		t.Errorf("%s for %d", many.Timeout, many.Objects)
	}
	if b.Objects != 1000 || b.Timeout != 10*time.Minute {
		t.Errorf("the original bench has changed: %s for %d", b.Timeout, b.Objects)
	}
}

// The names of quantities are the only contract between this package and bench/plot.
func TestRecordedGrowthCanBeDrawn(t *testing.T) {
	if err := plot.Draw(measured().Report, t.TempDir()); err != nil {
		t.Error(err)
	}
}
