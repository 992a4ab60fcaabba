// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cron_test

import (
	"fmt"
	"time"

	"github.com/modelbox-operator/modelbox-operator/cron"
)

func ExampleSchedule_Next() {
	schedule, err := cron.Parse("30 2 * * sat,sun")
	if err != nil {
		fmt.Println(err)
		return
	}
	newYork, err := cron.LoadLocation("America/New_York")
	if err != nil {
		fmt.Println(err)
		return
	}
	at := time.Date(2026, time.March, 6, 12, 0, 0, 0, time.UTC)
	for range 3 {
		at, _ = schedule.Next(at, newYork)
		fmt.Println(at)
	}
	// Output:
	// 2026-03-07 02:30:00 -0500 EST
	// 2026-03-08 03:00:00 -0400 EDT
	// 2026-03-14 02:30:00 -0400 EDT
}

func ExampleSchedule_Prev() {
	schedule, err := cron.Parse("*/15 * * * *")
	if err != nil {
		fmt.Println(err)
		return
	}
	back := time.Date(2026, time.March, 6, 12, 34, 56, 0, time.UTC)
	missed, _ := schedule.Prev(back, time.UTC)
	fmt.Println(missed)
	// Output: 2026-03-06 12:30:00 +0000 UTC
}

func ExampleParse() {
	_, err := cron.Parse("0 22-5 * * *")
	fmt.Println(err)
	// Output: "22-5" in the hour field is a range that runs backwards (give two ranges, such as 5-6,0-1); it takes 0-23 or *, also in lists (1,2), ranges (1-5) and steps (*/2)
}
