// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cron

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // The zones do not depend on files of the host.
)

// DefaultZone is the time zone of a schedule that names none.
const DefaultZone = "Etc/UTC"

// Times are a schedule and its time zone.
type Times struct {
	Schedule
	Zone *time.Location
}

// ParseIn parses an expression, and loads its time zone, which is DefaultZone if it is empty.
func ParseIn(expr, zone string) (Times, error) {
	schedule, err := Parse(expr)
	loc, unknown := LoadLocation(cmp.Or(zone, DefaultZone))
	return Times{schedule, loc}, errors.Join(err, unknown)
}

// zoneList returns zoneNames as a sorted list.
var zoneList = sync.OnceValue(func() []string { return strings.Fields(zoneNames) })

// LoadLocation returns the time zone of an IANA name, such as Europe/Berlin, in exactly the
// spelling of the database. The names are those of Go's own database and do not depend on files of
// the host. An error is one sentence that says what to use instead.
//
// The rules of a zone are loaded by [time.LoadLocation], so that a newer database of the host is
// used (see there for the paths), and otherwise the one in the program. Each call loads them again.
func LoadLocation(name string) (*time.Location, error) {
	if name == "" {
		return nil, errors.New(`the time zone is empty; give an IANA name such as "Etc/UTC" or "Europe/Berlin"`)
	}
	if strings.EqualFold(name, "Local") {
		return nil, fmt.Errorf(`%q is no time zone, because it depends on the machine; give an IANA name such as "Etc/UTC" or "Europe/Berlin"`, name)
	}
	if _, ok := slices.BinarySearch(zoneList(), name); !ok {
		return nil, unknownZone(name)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("the rules of time zone %q cannot be read: %w", name, err)
	}
	return loc, nil
}

// unknownZone returns the error for a name that is not in the database. It contains the correct
// name if only the case or spaces around it are wrong.
func unknownZone(name string) error {
	meant := func(zone string) bool { return strings.EqualFold(zone, strings.TrimSpace(name)) }
	if i := slices.IndexFunc(zoneList(), meant); i >= 0 {
		return fmt.Errorf("%s is not a known time zone; write %q", quote(name), zoneList()[i])
	}
	return fmt.Errorf(`%s is not a known time zone; give an IANA name such as "Etc/UTC" or "Europe/Berlin"`, quote(name))
}
