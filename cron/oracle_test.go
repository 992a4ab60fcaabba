// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cron

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// oracle is a second, slow implementation of the same rules, which shares no code with the first:
// it has a table for each field, checks the local time of each minute, and does not use the zone's
// changes of the offset.
type oracle struct {
	tables           [5][60]bool
	wild             bool
	anyDay, anyWkday bool
}

func newOracle(expr string) oracle {
	var o oracle
	words := strings.Fields(expr)
	o.wild = strings.ContainsAny(words[0]+words[1], "*?/")
	free := func(word string) bool {
		return slices.ContainsFunc(strings.Split(word, ","), func(item string) bool {
			return slices.Contains([]string{"*", "?", "*/1", "?/1"}, item)
		})
	}
	o.anyDay, o.anyWkday = free(words[2]), free(words[4])
	bounds := [5][2]int{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}}
	for i, word := range words {
		for item := range strings.SplitSeq(word, ",") {
			low, high, step := readItem(item, bounds[i][0], bounds[i][1])
			for v := low; v <= high; v += step {
				o.tables[i][v] = true
			}
		}
	}
	o.tables[4][0] = o.tables[4][0] || o.tables[4][7]
	return o
}

func readItem(item string, low, high int) (int, int, int) {
	step := 1
	span, stride, stepped := strings.Cut(item, "/")
	if stepped {
		step, _ = strconv.Atoi(stride)
	}
	if span == "*" || span == "?" {
		return low, high, step
	}
	from, to, ranged := strings.Cut(span, "-")
	low, _ = strconv.Atoi(from)
	if ranged {
		high, _ = strconv.Atoi(to)
	} else if !stepped {
		high = low
	}
	return low, high, step
}

// wallMinute is a minute in local time, as a consecutive number and as the values of the five
// fields.
type wallMinute struct {
	number int64
	values [5]int // in the order of the fields
}

func wallAt(t time.Time) wallMinute {
	_, month, day := t.Date()
	hour, minute, _ := t.Clock()
	number := time.Date(t.Year(), month, day, hour, minute, 0, 0, time.UTC).Unix() / 60
	return wallMinute{number, [5]int{minute, hour, day, int(month), int(t.Weekday())}}
}

func (o oracle) matches(w wallMinute) bool {
	for i := range 2 {
		if !o.tables[i][w.values[i]] {
			return false
		}
	}
	day, weekday := o.tables[2][w.values[2]], o.tables[4][w.values[4]]
	if o.anyDay || o.anyWkday {
		return o.tables[3][w.values[3]] && day && weekday
	}
	return o.tables[3][w.values[3]] && (day || weekday)
}

// slots returns the minutes in which the schedule runs, in Unix seconds, if the local time has
// these values, the first of them at start. reached is the latest local time so far: a fixed
// schedule runs for each minute when the local time reaches or passes it for the first time.
func (o oracle) slots(start int64, walls []wallMinute) []int64 {
	var slots []int64
	reached := walls[0].number - 1
	last := reached
	for i, now := range walls {
		jump := now.number - last - 1
		run := false
		if o.wild || jump >= 180 || jump <= -180 {
			run = o.matches(now)
			reached = now.number
		}
		for ; reached < now.number-1; reached++ {
			run = run || o.matches(wallAt(time.Unix((reached+1)*60, 0).UTC()))
		}
		if reached < now.number {
			reached = now.number
			run = run || o.matches(now)
		}
		last = now.number
		if run {
			slots = append(slots, start+int64(i)*60)
		}
	}
	return slots
}

// walk returns all scheduled times from start to before end, forward with Next and backward with
// Prev.
func walk(s Schedule, loc *time.Location, start, end int64) (forward, backward []int64) {
	for at := start - 1; ; {
		slot, ok := s.Next(time.Unix(at, 0), loc)
		if at = slot.Unix(); !ok || at >= end {
			break
		}
		forward = append(forward, at)
	}
	for at := end - 1; ; {
		slot, ok := s.Prev(time.Unix(at, 999_999_999), loc)
		if !ok || slot.Unix() < start {
			break
		}
		backward = append(backward, slot.Unix())
		at = slot.Unix() - 1
	}
	slices.Reverse(backward)
	return forward, backward
}

// window is a period around a change of the offset, with the local time of each minute.
type window struct {
	loc        *time.Location
	start, end int64
	walls      []wallMinute
}

func newWindow(loc *time.Location, middle int64, reach time.Duration) window {
	w := window{loc: loc, start: middle - int64(reach.Seconds()), end: middle + int64(reach.Seconds())}
	for at := w.start; at < w.end; at += 60 {
		w.walls = append(w.walls, wallAt(time.Unix(at, 0).In(loc)))
	}
	return w
}

// near returns the middle of the window, in which a change of less than three hours has all its
// effects.
func (w window) near() window {
	cut := len(w.walls)/2 - 5*60
	return window{w.loc, w.start + int64(cut)*60, w.end - int64(cut)*60, w.walls[cut : len(w.walls)-cut]}
}

// check compares both directions with the oracle. A schedule of many slots is compared only near
// the change.
func (w window) check(t *testing.T, expr string, s Schedule, o oracle) {
	t.Helper()
	want := o.slots(w.start, w.walls)
	if len(want) > 500 {
		w = w.near()
		want = o.slots(w.start, w.walls)
	}
	forward, backward := walk(s, w.loc, w.start, w.end)
	if !slices.Equal(want, forward) {
		t.Fatalf("Next, %q in %s from %d (-oracle +got):\n%s", expr, w.loc, w.start, cmp.Diff(w.show(want), w.show(forward)))
	}
	if !slices.Equal(want, backward) {
		t.Fatalf("Prev, %q in %s from %d (-oracle +got):\n%s", expr, w.loc, w.start, cmp.Diff(w.show(want), w.show(backward)))
	}
	for _, slot := range want {
		if got, ok := s.Prev(time.Unix(slot, 0), w.loc); !ok || got.Unix() != slot {
			t.Fatalf("Prev of a scheduled time, %q in %s at %d: got %v", expr, w.loc, slot, got)
		}
	}
}

func (w window) show(slots []int64) []string {
	var texts []string
	for _, slot := range slots {
		texts = append(texts, time.Unix(slot, 0).In(w.loc).Format("2006-01-02 15:04:05 -0700"))
	}
	return texts
}

// changes returns the instants at which the offset of a zone changes. It compares the offsets of
// each hour, and then of each minute.
func changes(loc *time.Location, from, to time.Time) []int64 {
	offset := func(t time.Time) int { _, o := t.In(loc).Zone(); return o }
	var found []int64
	for t := from; t.Before(to); t = t.Add(time.Hour) {
		if offset(t) == offset(t.Add(time.Hour)) {
			continue
		}
		at := t
		for offset(at) == offset(t) {
			at = at.Add(time.Minute)
		}
		found = append(found, at.Unix())
	}
	return found
}

var changingZones = []string{
	"Africa/Cairo", "Africa/Casablanca", "America/Asuncion", "America/Havana", "America/New_York", "America/Nuuk",
	"America/Santiago", "America/St_Johns", "Antarctica/Casey", "Antarctica/Troll", "Antarctica/Vostok", "Asia/Beirut",
	"Asia/Gaza", "Asia/Tehran", "Australia/Lord_Howe", "Europe/Dublin", "Europe/London", "Pacific/Apia",
	"Pacific/Bougainville", "Pacific/Chatham", "Pacific/Norfolk",
}

var changingSchedules = []string{
	// Fixed.
	"0 0 * * *", "30 0 * * *", "0 1 * * *", "30 1 * * *", "59 1 * * *", "0 2 * * *", "15 2 * * *", "30 2 * * *",
	"0 3 * * *", "30 3 * * *", "59 23 * * *", "45 23,0,1 * * *", "0,30 0-23 * * *", "0-59 2 * * *", "0-59 0-23 * * *",
	"0-29 1,2 * * *", "5,35 0-4 * * 0", "5,35 0-4 * * 6", "0 0 * * 7", "30 0 31 * *", "15,45 1-3 8 * *", "30 2 1 * 0",
	"30 2 8-14 3 *", "0 0 1 * *", "30 23 * * 6", "0 4 */2 * *", "10 2 ? 3,4,9-11 sun",
	// Wildcards.
	"* * * * *", "*/15 * * * *", "30 * * * *", "0 * * * *", "* 2 * * *", "*/20 1-3 * * *", "0 */2 * * *", "30 1/3 * * *",
	"45 ? * * 0", "?/10 0 * * *", "0-30/10 1,2 * * *", "7/13 * 1-15 * 6", "30 2/1 * * *", "30 0-23/1 * * 0",
}

// TestEveryChange compares Next and Prev with the oracle around every change of the offset from
// 2020 to 2035.
func TestEveryChange(t *testing.T) {
	t.Parallel()
	schedules, oracles := map[string]Schedule{}, map[string]oracle{}
	for _, expr := range changingSchedules {
		schedules[expr] = mustParse(t, expr)
		oracles[expr] = newOracle(strings.Replace(expr, "sun", "0", 1))
	}
	total := 0
	for _, zone := range changingZones {
		loc := mustLoad(t, zone)
		found := changes(loc, instant(t, "2020-01-01T00:00:00Z"), instant(t, "2036-01-01T00:00:00Z"))
		total += len(found)
		for _, at := range found {
			w := newWindow(loc, at, 26*time.Hour)
			for expr, s := range schedules {
				w.check(t, expr, s, oracles[expr])
			}
		}
	}
	if total < 300 {
		t.Errorf("only %d changes of the offset were found", total)
	}
}

// TestAnyChange does the same with random schedules at random changes in all zones since 1973,
// after which no offset has seconds.
func TestAnyChange(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 14))
	names := zoneList()
	for n := 0; n < 250; {
		loc := mustLoad(t, names[random.IntN(len(names))])
		year := time.Date(1973+random.IntN(80), time.January, 1, 0, 0, 0, 0, time.UTC)
		for _, at := range changes(loc, year, year.AddDate(1, 0, 0)) {
			n++
			w := newWindow(loc, at, 49*time.Hour)
			for range 6 {
				expr := randomExpr(random)
				w.check(t, expr, mustParse(t, expr), newOracle(expr))
			}
		}
	}
}

// TestCorrection uses changes that no real zone has: around the three hours from which on a change
// is a correction, in both directions.
func TestCorrection(t *testing.T) {
	t.Parallel()
	for _, offset := range []string{"-00:01", "-02:59", "-03:00", "-03:01", "-23:30", "00:01", "02:59", "03:00", "03:01", "23:30"} {
		loc := ruledZone(t, fmt.Sprintf("<A>0<B>%s,J80/02:00,J290/05:00", offset))
		found := changes(loc, instant(t, "2026-01-01T00:00:00Z"), instant(t, "2027-01-01T00:00:00Z"))
		if len(found) != 2 {
			t.Fatalf("offset %s: %d changes", offset, len(found))
		}
		for _, at := range found {
			w := newWindow(loc, at, 49*time.Hour)
			for _, expr := range changingSchedules[:20] {
				w.check(t, expr, mustParse(t, expr), newOracle(expr))
			}
		}
	}
}

// TestCalendar checks random sparse schedules over decades, day by day, with the weekdays and the
// lengths of the months of the time package.
func TestCalendar(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(2, 71))
	start, end := instant(t, "2079-01-01T00:00:00Z"), instant(t, "2109-01-01T00:00:00Z")
	var ends []wallMinute // Of the days, which is when the schedules run.
	for at := start.Add(minutesPerDay*time.Minute - time.Minute); at.Before(end); at = at.AddDate(0, 0, 1) {
		ends = append(ends, wallAt(at))
	}
	for range 80 {
		expr := fmt.Sprintf("59 23 %s %s %s", pick(random, 1, 31), pick(random, 1, 12), pick(random, 0, 7))
		s, err := Parse(expr)
		if err != nil {
			continue // Such as 30 February.
		}
		o := newOracle(expr)
		var want []int64
		for _, at := range ends {
			if o.matches(at) {
				want = append(want, at.number*60)
			}
		}
		forward, backward := walk(s, time.UTC, start.Unix(), end.Unix())
		if !slices.Equal(want, forward) || !slices.Equal(want, backward) {
			t.Fatalf("%q: got %d and %d slots, want %d", expr, len(forward), len(backward), len(want))
		}
	}
}

// randomExpr returns an expression whose hours are mostly those in which the offset changes.
func randomExpr(r *rand.Rand) string {
	hour := []func() string{
		func() string { return pick(r, 0, 23) },
		func() string { return pick(r, 0, 4) },
		func() string { return strconv.Itoa(r.IntN(4)) },
		func() string { return strconv.Itoa(22 + r.IntN(2)) },
	}[r.IntN(4)]()
	day, weekday := "*", "*"
	if r.IntN(3) == 0 {
		day = pick(r, 1, 31)
	}
	if r.IntN(3) == 0 {
		weekday = pick(r, 0, 7)
	}
	return strings.Join([]string{pick(r, 0, 59), hour, day, "*", weekday}, " ")
}

// pick returns a random field with values from low to high.
func pick(r *rand.Rand, low, high int) string {
	var items []string
	for range 1 + r.IntN(3) {
		a, b := low+r.IntN(high-low+1), low+r.IntN(high-low+1)
		items = append(items, []string{
			strconv.Itoa(a), strconv.Itoa(b),
			fmt.Sprintf("%d-%d", min(a, b), max(a, b)),
			fmt.Sprintf("%d-%d/%d", min(a, b), max(a, b), 1+r.IntN(9)),
			fmt.Sprintf("%d/%d", min(a, 6), 1+r.IntN(high)),
			fmt.Sprintf("*/%d", 1+r.IntN(9)),
			[]string{"*", "?"}[r.IntN(2)],
		}[r.IntN(7)])
	}
	return strings.Join(items, ",")
}
