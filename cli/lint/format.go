// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Formats are the names of the formats of findings.
var Formats = slices.Sorted(maps.Keys(formats))

var formats = map[string]func(io.Writer, []Finding, string) error{
	"text":   writeText,
	"json":   writeJSON,
	"sarif":  writeSARIF,
	"github": writeGitHub,
}

// Write writes findings in one of the Formats. version is that of this program.
func Write(w io.Writer, format string, found []Finding, version string) error {
	write, ok := formats[format]
	if !ok {
		return fmt.Errorf("unknown output format %q: use one of %s", format, strings.Join(Formats, ", "))
	}
	return write(w, found, version)
}

// writeText writes the form of compilers, which editors know as well.
func writeText(w io.Writer, found []Finding, _ string) error {
	for _, f := range found {
		if _, err := fmt.Fprintf(w, "%s:%d: %s: %s%s\n", f.File, f.Line, f.Severity, f.object(), indented(f.Text())); err != nil {
			return err
		}
	}
	return nil
}

// object returns the object of a finding as a prefix.
func (f *Finding) object() string {
	if f.Kind == "" || f.Name == "" {
		return ""
	}
	return fmt.Sprintf("%s %q: ", f.Kind, f.Name)
}

func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }

func writeJSON(w io.Writer, found []Finding, _ string) error {
	if found == nil {
		found = []Finding{}
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(found)
}

// writeGitHub writes workflow commands, which GitHub shows beside the lines of a pull request:
// https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
func writeGitHub(w io.Writer, found []Finding, _ string) error {
	message := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	for _, f := range found {
		title := strings.TrimSuffix(f.object(), ": ")
		if title == "" {
			title = f.Rule
		}
		if _, err := fmt.Fprintf(w, "::%s file=%s,line=%d,title=%s::%s\n",
			workflowCommand(f.Severity), property.Replace(f.File), f.Line, property.Replace(title), message.Replace(f.Text())); err != nil {
			return err
		}
	}
	return nil
}

// workflowCommand returns the command of a severity.
func workflowCommand(severity Severity) string {
	if severity == Note {
		return "notice"
	}
	return string(severity)
}
