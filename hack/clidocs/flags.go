// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"log"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// described matches what package flag prints of one flag, and byDefault the end of its description.
var (
	described = regexp.MustCompile(`(?m)^  -(\S+)(?: (\S+))?\n    \t(.*)$`)
	byDefault = regexp.MustCompile(` \(default "?(.*?)"?\)$`)
)

// printFlags prints the tables of the flags of the two processes. A flag that means the same in both is
// in the first of them.
func printFlags() {
	webhook, controller := flags("webhook"), flags("controller")
	both := slices.DeleteFunc(slices.Clone(webhook), func(row string) bool { return !slices.Contains(controller, row) })
	inBoth := func(row string) bool { return slices.Contains(both, row) }
	table("Both processes", both)
	table("The webhook", slices.DeleteFunc(webhook, inBoth))
	table("The controller", slices.DeleteFunc(controller, inBoth))
}

// flags returns a row of a table for each flag of a process, as the process itself describes it.
func flags(process string) []string {
	help, err := exec.Command("go", "run", "./"+process, "-help").CombinedOutput()
	all := described.FindAllStringSubmatch(string(help), -1)
	if err != nil || len(all) == 0 {
		log.Fatalf("the help of %s: %v\n%s", process, err, help)
	}
	rows := make([]string, 0, len(all))
	for _, flag := range all {
		name, usage, value := flag[1], flag[3], ""
		if flag[2] == "" { // A boolean one, whose default is printed only if it is true.
			value = "false"
		}
		if found := byDefault.FindStringSubmatch(usage); found != nil {
			usage, value = strings.TrimSuffix(usage, found[0]), found[1]
		}
		rows = append(rows, fmt.Sprintf("| `--%s` | %s | %s |", name, value, strings.ReplaceAll(usage, "|", `\|`)))
	}
	return rows
}

func table(title string, rows []string) {
	slices.Sort(rows)
	fmt.Printf("\n## %s\n\n| flag | default | meaning |\n|---|---|---|\n%s\n", title, strings.Join(rows, "\n"))
}
