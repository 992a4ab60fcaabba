// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	cli "github.com/modelbox-operator/modelbox-operator/cli/command"
	"github.com/modelbox-operator/modelbox-operator/test/golden"
)

// What the last release had is there, with the same type and default, or has a row in api-promise.md. The list is
// written by "make generate" in the commit of a release.
func TestNothingThatIsPromisedIsGone(t *testing.T) {
	const list = "testdata/promised.txt"
	promised := slices.Concat(promisedFields(t), promisedReasons(t), promisedMetrics(t), promisedFlags(t))
	slices.Sort(promised)
	if isRelease() {
		golden.Equal(t, list, []byte(strings.Join(promised, "\n")+"\n"))
		return
	}
	page := section(t, read(t, "api-promise.md"), "## Deprecation")
	for line := range strings.Lines(read(t, list)) {
		line = strings.TrimSuffix(line, "\n")
		name, _, _ := strings.Cut(line, ": ")
		if !slices.Contains(promised, line) && !strings.Contains(page, "| `"+name+"` |") {
			t.Errorf("api-promise.md has no row for `%s`, which the last release has, and this version has not: %s", name, line)
		}
	}
}

// promisedFields returns a line for each field of the CRDs, such as "ModelBox spec.replicas: integer, default 1", and for
// each value of an enum.
func promisedFields(t *testing.T) (lines []string) {
	t.Helper()
	files, _ := filepath.Glob("../config/crd/bases/*.yaml") // The pattern is well-formed.
	for _, file := range files {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict([]byte(read(t, file)), &crd); err != nil {
			t.Fatal(err)
		}
		for _, version := range crd.Spec.Versions {
			lines = append(lines, fieldsOf(crd.Spec.Names.Kind+" ", version.Schema.OpenAPIV3Schema)...)
		}
	}
	return atLeast(t, 500, "fields", lines)
}

func fieldsOf(parent string, schema *apiextensionsv1.JSONSchemaProps) (lines []string) {
	for name, field := range schema.Properties {
		line := parent + name + ": " + field.Type
		if field.XIntOrString {
			line += "integer or string"
		}
		if field.Default != nil {
			line += ", default " + string(field.Default.Raw)
		}
		lines = append(lines, line)
		for _, value := range field.Enum {
			lines = append(lines, parent+name+" "+string(value.Raw))
		}
		lines = append(lines, fieldsOf(parent+name+".", &field)...)
	}
	if schema.Items != nil {
		lines = append(lines, fieldsOf(strings.TrimSuffix(parent, ".")+"[].", schema.Items.Schema)...)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		lines = append(lines, fieldsOf(parent+"*.", schema.AdditionalProperties.Schema)...)
	}
	return lines
}

func promisedReasons(t *testing.T) (lines []string) {
	t.Helper()
	for reason := range reasons(t) {
		lines = append(lines, "reason "+reason)
	}
	return lines
}

// promisedMetrics returns a line for each name of a metric in the sources.
func promisedMetrics(t *testing.T) []string {
	t.Helper()
	lines := map[string]bool{}
	for _, folder := range []string{"controller", "internal", "webhook"} {
		err := filepath.WalkDir("../"+folder, func(file string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			for _, found := range regexp.MustCompile(`"(modelbox_[a-z_]+)"`).FindAllStringSubmatch(read(t, file), -1) {
				lines["metric "+found[1]] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return atLeast(t, 8, "metrics", slices.Collect(maps.Keys(lines)))
}

// promisedFlags returns a line for each flag of a process, from flags.md, and of each command of modelbox. The flags of
// kubectl that several commands have, of which pause has no others, are there once.
func promisedFlags(t *testing.T) (lines []string) {
	t.Helper()
	page := read(t, "flags.md")
	for title, processes := range map[string][]string{"Both processes": {"controller", "webhook"}, "The controller": {"controller"}, "The webhook": {"webhook"}} {
		for _, row := range regexp.MustCompile("(?m)^\\| `(--[a-z-]+)` \\|").FindAllStringSubmatch(section(t, page, "## "+title), -1) {
			for _, process := range processes {
				lines = append(lines, process+" "+row[1])
			}
		}
	}
	root := cli.New(cli.Env{Program: "modelbox"})
	pause, _, err := root.Find([]string{"pause"})
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range root.Commands() {
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			if command == pause || pause.Flags().Lookup(flag.Name) == nil {
				lines = append(lines, fmt.Sprintf("%s --%s: %s", command.CommandPath(), flag.Name, flag.Value.Type()))
			}
		})
	}
	return atLeast(t, 100, "flags", lines)
}

// atLeast fails the test if so few lines were found that the search for them must be wrong.
func atLeast(t *testing.T, least int, what string, lines []string) []string {
	t.Helper()
	if len(lines) < least {
		t.Errorf("only %d %s were found", len(lines), what)
	}
	return lines
}
