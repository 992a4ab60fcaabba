// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
)

// Formats are the names of the formats of findings, the default first.
var Formats = []string{"text", "json", "sarif", "github"}

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
		text := strings.ReplaceAll(f.Text(), "\n", "\n    ")
		if _, err := fmt.Fprintf(w, "%s:%d: %s: %s%s\n", f.File, f.Line, f.Severity, f.object(), text); err != nil {
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

func writeJSON(w io.Writer, found []Finding, _ string) error {
	return encode(w, append([]Finding{}, found...)) // An empty list is no null.
}

func encode(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// writeSARIF writes the part of SARIF 2.1.0 that code scanning reads:
// https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
func writeSARIF(w io.Writer, found []Finding, version string) error {
	type object = map[string]any
	rules, results := []object{}, []object{}
	known := map[string]bool{}
	for _, f := range found {
		if !known[f.Rule] {
			known[f.Rule] = true
			rules = append(rules, object{"id": f.Rule})
		}
		results = append(results, object{
			"ruleId": f.Rule, "level": f.Severity, "message": object{"text": f.object() + f.Text()},
			"locations": []object{{"physicalLocation": object{"artifactLocation": object{"uri": uri(f.File)}, "region": object{"startLine": f.Line}}}},
		})
	}
	driver := object{
		"name": "modelbox", "version": version, "informationUri": "https://github.com/modelbox-operator/modelbox-operator", "rules": rules,
	}
	return encode(w, object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []object{{"tool": object{"driver": driver}, "results": results}},
	})
}

// uri returns the relative URI of a path, or the absolute one.
func uri(path string) string {
	if filepath.IsAbs(path) {
		return (&url.URL{Scheme: "file", Path: path}).String()
	}
	return (&url.URL{Path: filepath.ToSlash(filepath.Clean(path))}).EscapedPath()
}

// writeGitHub writes workflow commands, which GitHub shows beside the lines of a pull request:
// https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
func writeGitHub(w io.Writer, found []Finding, _ string) error {
	message := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	for _, f := range found {
		command, title := string(f.Severity), cmp.Or(strings.TrimSuffix(f.object(), ": "), f.Rule)
		if f.Severity == Note {
			command = "notice"
		}
		if _, err := fmt.Fprintf(w, "::%s file=%s,line=%d,title=%s::%s\n",
			command, property.Replace(f.File), f.Line, property.Replace(title), message.Replace(f.Text())); err != nil {
			return err
		}
	}
	return nil
}
