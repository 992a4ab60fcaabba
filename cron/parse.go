// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cron

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxLength is the maximum length of an expression in bytes. A schedule that lists every value of
// every field needs less than half of it.
const MaxLength = 1024

const macroNames = "@yearly, @annually, @monthly, @weekly, @daily, @midnight or @hourly"

var errEmpty = errors.New("the schedule is empty; give five fields (minute, hour, day of month, month, day of week) or one of " + macroNames)

// Parse parses a cron expression of five fields, or a macro; see the package's documentation for
// the syntax. An error is one sentence that says what is invalid and what is allowed.
func Parse(expr string) (Schedule, error) {
	if len(expr) > MaxLength {
		return Schedule{}, fmt.Errorf("the schedule is %d bytes long, at most %d are allowed; use ranges and steps in place of lists", len(expr), MaxLength)
	}
	var words [5]string
	n := 0
	for word := range strings.FieldsSeq(expr) {
		if n < len(words) {
			words[n] = word
		}
		n++
	}
	key, _, assigns := strings.Cut(words[0], "=")
	switch {
	case n == 0:
		return Schedule{}, errEmpty
	case assigns && (strings.EqualFold(key, "TZ") || strings.EqualFold(key, "CRON_TZ")):
		return Schedule{}, fmt.Errorf("a schedule does not take %s; give the time zone in timeZone and leave the five fields here", quote(words[0]))
	case strings.HasPrefix(words[0], "@"):
		return parseMacro(words[0], n)
	case n != len(words):
		return Schedule{}, fmt.Errorf("a schedule has five fields (minute, hour, day of month, month, day of week) but this one has %d; there are none for seconds and years", n)
	}
	return parseFields(words)
}

func parseMacro(name string, words int) (Schedule, error) {
	var fields [5]string
	switch name {
	case "@yearly", "@annually":
		fields = [5]string{"0", "0", "1", "1", "*"}
	case "@monthly":
		fields = [5]string{"0", "0", "1", "*", "*"}
	case "@weekly":
		fields = [5]string{"0", "0", "*", "*", "0"}
	case "@daily", "@midnight":
		fields = [5]string{"0", "0", "*", "*", "*"}
	case "@hourly":
		fields = [5]string{"0", "*", "*", "*", "*"}
	case "@every":
		return Schedule{}, errors.New("@every is not supported, because a schedule names times of the clock; use a step such as */5 * * * *, or one of " + macroNames)
	case "@reboot":
		return Schedule{}, errors.New("@reboot is not supported, because it names no time; use five fields or one of " + macroNames)
	default:
		return Schedule{}, fmt.Errorf("%s is not a known macro; use one of %s, in lower case, or five fields", quote(name), macroNames)
	}
	if words > 1 {
		return Schedule{}, fmt.Errorf("%s stands for a whole schedule; remove what follows it", name)
	}
	return parseFields(fields)
}

func parseFields(words [5]string) (Schedule, error) {
	var sets [5]uint64
	var free [5]bool
	for i, word := range words {
		var err error
		if sets[i], free[i], err = fields[i].parse(word); err != nil {
			return Schedule{}, err
		}
	}
	s := Schedule{
		minutes:  sets[0],
		hours:    uint32(sets[1]),                  //nolint:gosec // G115: no higher bit is set.
		days:     uint32(sets[2]),                  //nolint:gosec // G115: no higher bit is set.
		months:   uint16(sets[3]),                  //nolint:gosec // G115: no higher bit is set.
		weekdays: uint8(sets[4]|sets[4]>>7) & 0x7f, //nolint:gosec // G115: no higher bit is set.
		wild:     strings.ContainsAny(words[0], "*?/") || strings.ContainsAny(words[1], "*?/"),
		either:   !free[2] && !free[4],
	}
	// What fires at all does so within eight years: a month has each weekday, and a leap year each
	// date.
	if _, fires := s.Next(time.Unix(0, 0), time.UTC); !fires {
		return Schedule{}, fmt.Errorf("the schedule never fires, because no month in %s has a day in %s; change the month field or the day of month field", quote(words[3]), quote(words[2]))
	}
	return s, nil
}

// field defines the values of one of the five fields.
type field struct {
	name     string
	min, max int      // the allowed values
	end      int      // the last value of * and of a step; lower than max only for weekdays, where 7 is Sunday too
	names    []string // the names of the values from min on
	takes    string   // the allowed values, for error messages
}

var fields = [5]*field{
	{name: "minute", max: 59, end: 59, takes: "0-59 or *"},
	{name: "hour", max: 23, end: 23, takes: "0-23 or *"},
	{name: "day of month", min: 1, max: 31, end: 31, takes: "1-31, * or ?"},
	{name: "month", min: 1, max: 12, end: 12, takes: "1-12, jan-dec or *",
		names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{name: "day of week", max: 7, end: 6, takes: "0-7 (0 and 7 are Sunday), sun-sat, * or ?",
		names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// parse returns the values of a field as bits, and whether the field is unrestricted: an item is *
// or ?, also with a step of 1.
func (f *field) parse(word string) (set uint64, free bool, err error) {
	for item := range strings.SplitSeq(word, ",") {
		if item == "" {
			return 0, false, f.refuse(word, "has an empty list item")
		}
		low, high, step, err := f.parseItem(item)
		if err != nil {
			return 0, false, err
		}
		for v := low; v <= high; v += step {
			set |= 1 << v
		}
		free = free || step == 1 && strings.ContainsAny(item, "*?")
	}
	return set, free, nil
}

// parseItem returns the bounds and the step of one item of a list.
func (f *field) parseItem(item string) (low, high, step int, err error) {
	span, stride, stepped := strings.Cut(item, "/")
	from, to, ranged := strings.Cut(span, "-")
	switch {
	case span == "*" || span == "?":
		low, high = f.min, f.end
	case ranged:
		low, high, err = f.parseRange(item, from, to)
	default:
		low, err = f.parseValue(item, from)
		high = low
	}
	if err != nil || !stepped {
		return low, high, 1, err
	}
	step, ok := number(stride)
	if !ok || step == 0 {
		return 0, 0, 0, f.refuse(item, "has a step that is not a number from 1 on")
	}
	if !ranged {
		low, high = low%(f.end+1), f.end
	}
	return low, high, step, nil
}

// parseRange returns the bounds of a range. If the end of a range is Sunday by name, it is the end
// of the week, as in sat-sun.
func (f *field) parseRange(item, from, to string) (low, high int, err error) {
	if low, err = f.parseValue(item, from); err != nil {
		return 0, 0, err
	}
	if high, err = f.parseValue(item, to); err != nil {
		return 0, 0, err
	}
	if low > 0 && strings.EqualFold(to, "sun") {
		high = f.max
	}
	if low > high {
		return 0, 0, f.refuse(item, "is a range that runs backwards (give two ranges, such as 5-6,0-1)")
	}
	return low, high, nil
}

// parseValue returns the value of a number or name.
func (f *field) parseValue(item, text string) (int, error) {
	named := func(name string) bool { return len(name) == len(text) && strings.EqualFold(name, text) }
	if i := slices.IndexFunc(f.names, named); i >= 0 {
		return f.min + i, nil
	}
	v, ok := number(text)
	switch {
	case ok && f.min <= v && v <= f.max:
		return v, nil
	case ok:
		return 0, f.refuse(item, "is out of range")
	}
	return 0, f.refuse(item, "is not one of its values")
}

// refuse returns the error for a part of the field.
func (f *field) refuse(part, problem string) error {
	return fmt.Errorf("%s in the %s field %s; it takes %s, also in lists (1,2), ranges (1-5) and steps (*/2)", quote(part), f.name, problem, f.takes)
}

// number parses a number without a sign. A number that is too large for any field does not
// overflow.
func number(text string) (n int, ok bool) {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		n = min(n*10+int(text[i]-'0'), 1<<16)
	}
	return n, text != ""
}

// quote quotes a part of an expression, or its beginning if it is long.
func quote(text string) string {
	const enough = 40
	if len(text) > enough {
		return strconv.Quote(text[:enough]) + "..."
	}
	return strconv.Quote(text)
}
