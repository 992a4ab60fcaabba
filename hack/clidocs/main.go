// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command clidocs prints the help of each command of modelbox, and once the flags that name a cluster:
// docs/cli.md is introduction.md and this. With the argument "flags" it prints the flags of the two
// processes: docs/flags.md is flags.md and this.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"k8s.io/utils/clock"

	"github.com/modelbox-operator/modelbox-operator/cli/command"
)

// leftOut are the links, the flag that each command has, and the heading of options without any.
var leftOut = regexp.MustCompile("(?s)\n### SEE ALSO\n.*$|(?-s:  -h, --help +help for .*\n)|\n### Options\n\n```\n  -h, --help   help for \\w+\n```\n")

func main() {
	if len(os.Args) > 1 && os.Args[1] == "flags" {
		printFlags()
		return
	}
	root := command.New(command.Env{Program: "modelbox", Clock: clock.RealClock{}})
	root.DisableAutoGenTag = true
	root.InitDefaultCompletionCmd()
	home, _ := os.UserHomeDir()
	fmt.Printf("\n### The flags that name a cluster\n\nThe commands that use a cluster have these flags of kubectl:\n\n```\n%s```\n", hideClusterFlags(root))
	for _, cmd := range root.Commands() {
		if !cmd.IsAvailableCommand() {
			continue
		}
		var out bytes.Buffer
		if err := doc.GenMarkdownCustom(cmd, &out, func(name string) string { return name }); err != nil {
			log.Fatal(err)
		}
		text := strings.ReplaceAll("\n"+leftOut.ReplaceAllString(out.String(), ""), "\n##", "\n###") // Below the page's own headings.
		if cmd.Flags().Lookup("kubeconfig") != nil {
			text += "\nIt has [the flags of kubectl](#the-flags-that-name-a-cluster) as well.\n"
		}
		fmt.Print("\n" + strings.TrimSpace(strings.ReplaceAll(text, home, "~")) + "\n")
	}
}

// flagName matches a flag in a usage.
var flagName = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+)`)

// hideClusterFlags hides the flags of kubectl that several commands have, and returns their usage: the
// command pause has these alone. A flag of the same name that means something else stays.
func hideClusterFlags(root *cobra.Command) string {
	pause, _, err := root.Find([]string{"pause"})
	if err != nil {
		log.Fatal(err)
	}
	usages := pause.Flags().FlagUsages()
	for _, match := range flagName.FindAllStringSubmatch(usages, -1) {
		shared := *pause.Flags().Lookup(match[1])
		for _, cmd := range root.Commands() {
			if flag := cmd.Flags().Lookup(match[1]); flag != nil && flag.Shorthand == shared.Shorthand && flag.Usage == shared.Usage {
				flag.Hidden = true
			}
		}
	}
	return usages
}

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
