// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cron

import (
	"archive/zip"
	"encoding/binary"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

//go:generate go test -run ^TestZoneNames$ -count=1 -update

var update = flag.Bool("update", false, "write the names of the zones again")

const zoneNamesFile = "zz_generated.zonenames.go"

func TestLoadLocation(t *testing.T) {
	t.Parallel()
	const hint = `; give an IANA name such as "Etc/UTC" or "Europe/Berlin"`
	for name, wantErr := range map[string]string{
		"Etc/UTC":                        "",
		"Etc/GMT+5":                      "",
		"America/New_York":               "",
		"America/Argentina/Buenos_Aires": "",
		"":                               "the time zone is empty" + hint,
		"Local":                          `"Local" is no time zone, because it depends on the machine` + hint,
		"america/new_york":               `"america/new_york" is not a known time zone; write "America/New_York"`,
		" Europe/Berlin\n":               `" Europe/Berlin\n" is not a known time zone; write "Europe/Berlin"`,
		"Europe":                         `"Europe" is not a known time zone` + hint,
		"../zoneinfo/UTC":                `"../zoneinfo/UTC" is not a known time zone` + hint,
		"/etc/localtime":                 `"/etc/localtime" is not a known time zone` + hint,
		"right/UTC":                      `"right/UTC" is not a known time zone` + hint,
		"UTC+1":                          `"UTC+1" is not a known time zone` + hint,
		"UTC\nEtc/UTC":                   `"UTC\nEtc/UTC" is not a known time zone` + hint,
		strings.Repeat("x", 1<<20):       `"` + strings.Repeat("x", 40) + `"... is not a known time zone` + hint,
	} {
		loc, err := LoadLocation(name)
		if got := errText(err); got != wantErr {
			t.Errorf("LoadLocation(%.60q):\ngot  %s\nwant %s", name, got, wantErr)
		}
		if err == nil && loc.String() != name {
			t.Errorf("LoadLocation(%q) = %v", name, loc)
		}
	}
}

// TestZoneNames compares the names with those of the Go installation. A name that Go does not have
// is an error. A new name of a later Go is only logged, so that the tests pass with any Go; "go
// generate ./cron" adds it.
func TestZoneNames(t *testing.T) {
	names := zoneNamesOfGo(t)
	if *update {
		writeZoneNames(t, names)
		return
	}
	if !slices.IsSorted(zoneList()) {
		t.Error("the names are not in order")
	}
	if n := len(zoneList()); n < 590 {
		t.Errorf("there are only %d names", n)
	}
	for _, name := range zoneList() {
		if _, err := LoadLocation(name); err != nil {
			t.Error(err)
		}
		if _, ok := slices.BinarySearch(names, name); !ok {
			t.Errorf("Go does not know %s", name)
		}
	}
	if len(names) > len(zoneList()) {
		t.Logf("this Go knows %d more zones", len(names)-len(zoneList()))
	}
}

func zoneNamesOfGo(t *testing.T) []string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("no go command: %v", err)
	}
	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Skipf("no time zone database: %v", err)
	}
	defer archive.Close()
	var names []string
	for _, file := range archive.File {
		if !strings.HasSuffix(file.Name, "/") {
			names = append(names, file.Name)
		}
	}
	slices.Sort(names)
	return names
}

func writeZoneNames(t *testing.T, names []string) {
	t.Helper()
	old, err := os.ReadFile(zoneNamesFile)
	if err != nil {
		t.Fatal(err)
	}
	list := []byte("`\n" + strings.Join(names, "\n") + "\n`")
	text := regexp.MustCompile("(?s)`.*`").ReplaceAllLiteral(old, list)
	if err := os.WriteFile(zoneNamesFile, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestPeriods checks all periods of all zones in three centuries against the offsets of the time
// package. It also checks that two changes are never closer than a correction, because a period
// considers only one change before it.
func TestPeriods(t *testing.T) {
	t.Parallel()
	fixed := mustParse(t, "0 0 * * *")
	from, to := instant(t, "1800-01-01T00:00:00Z").Unix(), instant(t, "2100-01-01T00:00:00Z").Unix()
	for _, name := range zoneList() {
		loc := mustLoad(t, name)
		offset := func(at int64) int64 { _, o := time.Unix(at, 0).In(loc).Zone(); return int64(o) }
		for at := from; at < to; {
			p := fixed.periodAt(at, loc)
			start, end := max(p.start, from), min(p.end, to)
			if p.start > at || p.end <= at || p.start > from && p.end-p.start < correction {
				t.Fatalf("%s at %d: got %+v", name, at, p)
			}
			if p.start > from && (p.before == p.offset || offset(p.start-1) != p.before) {
				t.Fatalf("%s at %d: the clock did not change as in %+v", name, at, p)
			}
			for part := range int64(17) {
				if in := start + (end-1-start)*part/16; offset(in) != p.offset {
					t.Fatalf("%s at %d: the offset is %d in %+v", name, in, offset(in), p)
				}
			}
			at = p.end
		}
	}
}

// ruledZone returns a location that always follows the rule of a POSIX TZ string.
func ruledZone(tb testing.TB, rule string) *time.Location {
	tb.Helper()
	// RFC 9636: a header, a body without changes and with one type of local time, both twice, then
	// the rule.
	header := append([]byte("TZif2"), make([]byte, 15)...)
	for _, count := range []uint32{0, 0, 0, 0, 1, 4} {
		header = binary.BigEndian.AppendUint32(header, count)
	}
	body := append(header, "\x00\x00\x00\x00\x00\x00UTC\x00"...)
	data := slices.Concat(body, body, []byte("\n"+rule+"\n"))
	loc, err := time.LoadLocationFromTZData(rule, data)
	if err != nil {
		tb.Fatal(err)
	}
	return loc
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
