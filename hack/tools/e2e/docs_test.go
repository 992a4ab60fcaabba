// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/strvals"
	"sigs.k8s.io/yaml"
)

// section returns the section of docs/install.md about Helm.
func section(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(root + "/docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "\n## Helm\n")
	if !found {
		t.Fatal("docs/install.md has no section about Helm")
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// The chart renders with the values of each command.
func TestTheDocumentedCommands(t *testing.T) {
	readme, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^    helm (?:.*\\\n)*.*$`).FindAllString(section(t)+string(readme), -1)
	set := regexp.MustCompile(`--set(-file)? (\S+)`)
	found := 0
	for _, command := range commands {
		if regexp.MustCompile(`\s[^'\s]*[{}]`).MatchString(command) {
			t.Errorf("a shell expands the braces in %s", command)
		}
		values := map[string]any{}
		for _, flag := range set.FindAllStringSubmatch(command, -1) {
			found++
			name, value, _ := strings.Cut(strings.Trim(flag[2], "'"), "=")
			if flag[1] != "" {
				value = pem
			}
			if err := strvals.ParseInto(name+"="+value, values); err != nil {
				t.Errorf("%s: %v", command, err)
			}
		}
		text, err := yaml.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := helm(t, "team-operator", string(text)); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
	if found < 8 {
		t.Errorf("only %d flags were found", found)
	}
}

// The table has every value, as itself or as a part of one.
func TestTheDocumentedValues(t *testing.T) {
	loaded, err := load()
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*) \\| .* \\|$").FindAllStringSubmatch(section(t), -1) {
		for _, cell := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			documented[cell[1]] = true
			if _, err := common.Values(loaded.Values).PathValue(cell[1]); err != nil {
				if _, err := common.Values(loaded.Values).Table(cell[1]); err != nil {
					t.Errorf("docs/install.md has the value %s, which does not exist", cell[1])
				}
			}
		}
	}
	all, err := yaml.Marshal(loaded.Values)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range leaves(t, string(all)) {
		known := false
		for name := range documented {
			known = known || path == name || strings.HasPrefix(path, name+".")
		}
		if !known {
			t.Errorf("docs/install.md lacks the value %s", path)
		}
	}
}
