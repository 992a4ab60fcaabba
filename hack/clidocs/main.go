// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command clidocs writes docs/cli.md to the standard output: an introduction, and the help of
// each command of modelbox.
package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"k8s.io/utils/clock"

	"github.com/modelbox-operator/modelbox-operator/cli/command"
)

//go:embed introduction.md
var introduction string

func main() {
	text, err := page()
	if err != nil {
		fmt.Fprintln(os.Stderr, "clidocs:", err)
		os.Exit(1)
	}
	fmt.Print(text)
}

func page() (string, error) {
	root := command.New(command.Env{Program: "modelbox", Clock: clock.RealClock{}})
	root.DisableAutoGenTag = true
	root.InitDefaultCompletionCmd()
	var out strings.Builder
	out.WriteString(introduction + "\n## Commands\n")
	for _, cmd := range root.Commands() {
		if !cmd.IsAvailableCommand() {
			continue
		}
		text, err := section(cmd)
		if err != nil {
			return "", err
		}
		out.WriteString("\n" + text)
	}
	return out.String(), nil
}

var seeAlso = regexp.MustCompile(`(?s)\n### SEE ALSO\n.*$`)

// section returns the help of a command, with headings below that of the commands.
func section(cmd *cobra.Command) (string, error) {
	var out bytes.Buffer
	if err := doc.GenMarkdownCustom(cmd, &out, func(name string) string { return name }); err != nil {
		return "", err
	}
	text := seeAlso.ReplaceAllString(out.String(), "")
	text = strings.ReplaceAll(text, "\n### ", "\n#### ")
	text = strings.TrimSpace(strings.Replace(text, "## ", "### ", 1))
	// The home directory is that of who runs the generator.
	if home, err := os.UserHomeDir(); err == nil && home != "/" {
		text = strings.ReplaceAll(text, home, "~")
	}
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return strings.Join(lines, "\n") + "\n", nil
}
