// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command clidocs prints the help of each command of modelbox: docs/cli.md is introduction.md and this.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra/doc"
	"k8s.io/utils/clock"

	"github.com/modelbox-operator/modelbox-operator/cli/command"
)

var seeAlso = regexp.MustCompile(`(?s)\n### SEE ALSO\n.*$`)

func main() {
	root := command.New(command.Env{Program: "modelbox", Clock: clock.RealClock{}})
	root.DisableAutoGenTag = true
	root.InitDefaultCompletionCmd()
	home, _ := os.UserHomeDir()
	for _, cmd := range root.Commands() {
		if !cmd.IsAvailableCommand() {
			continue
		}
		var out bytes.Buffer
		if err := doc.GenMarkdownCustom(cmd, &out, func(name string) string { return name }); err != nil {
			log.Fatal(err)
		}
		text := strings.ReplaceAll("\n"+seeAlso.ReplaceAllString(out.String(), ""), "\n##", "\n###") // Below the page's own headings.
		fmt.Print("\n" + strings.TrimSpace(strings.ReplaceAll(text, home, "~")) + "\n")
	}
}
