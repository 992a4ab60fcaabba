// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// section returns the text of a page below a heading, up to the next heading that is not deeper.
func section(t *testing.T, page, title string) string {
	t.Helper()
	level := strings.Index(title, " ")
	_, text, found := strings.Cut("\n"+page, "\n"+title+"\n")
	if !found {
		t.Fatalf("no heading is %q", title)
	}
	if end := regexp.MustCompile(`(?m)^#{1,` + string(rune('0'+level)) + `} `).FindStringIndex(text); end != nil {
		text = text[:end[0]]
	}
	return text
}

// A figure for planning is the one that was measured.
func TestFiguresAreMeasured(t *testing.T) {
	plan := section(t, read(t, "operations.md"), "## Size")
	rows := regexp.MustCompile(`(?m)^\| controller memory.* \| ([\d.]+ MiB) \| .make bench`).FindAllStringSubmatch(read(t, "performance.md"), -1)
	if len(rows) != 3 {
		t.Fatalf("performance.md has %d figures of the controller's memory", len(rows))
	}
	for _, row := range rows {
		if !strings.Contains(plan, row[1]) {
			t.Errorf("operations.md does not plan with %s, which performance.md has measured", row[1])
		}
	}
}

// The list of the controller's permissions has each resource of its roles, those of the components included.
func TestEveryPermissionIsOnThePage(t *testing.T) {
	list := strings.ToLower(section(t, read(t, "operations.md"), "## Permissions"))
	files := []string{"../config/controller/generated/role.yaml", "../config/gateway-api/roles.yaml", "../config/keda/roles.yaml", "../config/prometheus-operator/roles.yaml"}
	kinds := []string{"modelboxes", "apps", "genericdaemons", "uniteddeployments", "erus"}
	checked := 0
	for _, file := range files {
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(read(t, file))), 4096)
		for {
			var role rbacv1.ClusterRole
			if err := decoder.Decode(&role); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			for _, rule := range role.Rules {
				for _, resource := range rule.Resources {
					kind, sub, _ := strings.Cut(resource, "/")
					if slices.Contains(kinds, kind) { // "The five kinds".
						kind = sub
					} else if sub != "" {
						kind = resource
					}
					checked++
					if !strings.Contains(list, kind) {
						t.Errorf("operations.md does not list %s, of %s", resource, file)
					}
				}
			}
		}
	}
	if checked < 25 {
		t.Errorf("only %d resources were found", checked)
	}
}

// The page of rollouts has each reason for which one has failed, and each field that a return leaves as it is.
func TestWhatReturnsIsOnThePage(t *testing.T) {
	page := section(t, read(t, "rollouts.md"), "## A rollout that fails returns")
	for list, file := range map[string]string{"ofTemplate": "../controller/problems/reason.go", "ofModel": "../controller/problems/reason.go", "notReturned": "../kinds/workload/rollout.go"} {
		source := regexp.MustCompile(`(?s)\nvar ` + list + ` = sets\.New\((.*?)\)`).FindStringSubmatch(read(t, file))
		if source == nil {
			t.Fatalf("%s has no %s", file, list)
		}
		names := regexp.MustCompile(`"(\w+)"|\breason(\w+)`).FindAllStringSubmatch(source[1], -1)
		if len(names) < 8 {
			t.Errorf("only %d names of %s were found", len(names), list)
		}
		for _, name := range names {
			if !regexp.MustCompile(`\b` + name[1] + name[2] + `\b`).MatchString(page) {
				t.Errorf("rollouts.md does not have %s%s, of %s", name[1], name[2], list)
			}
		}
	}
}

// The page lists each label and annotation of ours that the code or the manifests name.
func TestEveryKeyIsOnThePage(t *testing.T) {
	page := read(t, "labels.md")
	key := regexp.MustCompile(`\b((?:rights\.)?modelbox-operator\.github\.io|mtsre\.meitu\.com)/([a-z][a-z-]+)\b`)
	found := map[string]string{}
	for _, folder := range []string{"api", "cli", "config", "controller", "hack/local", "kinds", "webhook"} {
		err := filepath.WalkDir("../"+folder, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(file, "_test.go") || strings.Contains(file, "/samples/") || !slices.Contains([]string{".go", ".yaml"}, filepath.Ext(file)) {
				return err
			}
			data, err := os.ReadFile(file)
			for _, match := range key.FindAllString(string(data), -1) {
				if !regexp.MustCompile(`/v\d`).MatchString(match) { // The version of a group is no key.
					found[match] = file
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for match, file := range found {
		if !strings.Contains(page, "`"+match+"`") {
			t.Errorf("labels.md does not have %s, of %s", match, file)
		}
	}
	if len(found) < 12 {
		t.Errorf("only %d keys were found: %v", len(found), found)
	}
}

// A page whose commands need a tool that not everyone has says so in its text.
func TestToolsAreNamed(t *testing.T) {
	tool := regexp.MustCompile(`(?m)(?:^ *(?:\$ )?|\| |\$\()(jq|cmctl|helm|kind|skopeo|crane|cosign|kustomize|aws|gcloud|vhs|node|npm) `)
	blocks := regexp.MustCompile("(?ms)^ *```.*?^ *```|^    .*?$")
	checked := 0
	for _, page := range pages() {
		text := read(t, page)
		prose := code.ReplaceAllStringFunc(blocks.ReplaceAllString(text, ""), func(s string) string { return strings.Trim(s, "`") })
		for _, block := range blocks.FindAllString(text, -1) {
			for _, found := range tool.FindAllStringSubmatch(block, -1) {
				checked++
				if !regexp.MustCompile(`(?i)\b` + found[1] + `\b`).MatchString(prose) {
					t.Errorf("%s needs %s, and its text does not name it: %s", page, found[1], found[0])
				}
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d uses of tools were found", checked)
	}
}

// A reader gets through a page: only the reference of the API, in which readers look fields up, may be longer. A start
// page leads to each of them.
func TestNoPageIsTooLongOrHidden(t *testing.T) {
	start := read(t, "README.md")
	for _, page := range pages() {
		words := len(strings.Fields(read(t, page)))
		if words > 4000 && page != "api.md" && page != "../CHANGELOG.md" {
			t.Errorf("%s has %d words: divide it", page, words)
		}
		if filepath.Dir(page) == "." && page != "README.md" && !strings.Contains(start, "("+page+")") {
			t.Errorf("README.md has no link to %s", page)
		}
	}
}

// A page that is there in Chinese has the same tables and blocks of code, but for their comments and texts.
func TestChinesePagesHaveTheSameParts(t *testing.T) {
	pages, _ := filepath.Glob("zh-CN/*.md") // The pattern is well-formed.
	row, block := regexp.MustCompile(`(?m)^\|`), regexp.MustCompile(`(?m)^(    .*\n)+`)
	checked := 0
	for _, page := range pages {
		english := filepath.Base(page)
		if slices.Contains([]string{"glossary.md", "model-platform.md", "monitoring.md", "tutorial.md"}, english) { // These have parts in one language alone.
			continue
		}
		checked++
		for what, pattern := range map[string]*regexp.Regexp{"rows of tables": row, "blocks": block} {
			if want, got := len(pattern.FindAllString(read(t, english), -1)), len(pattern.FindAllString(read(t, page), -1)); got != want {
				t.Errorf("%s has %d %s, and the English page %d", page, got, what, want)
			}
		}
	}
	if checked < 12 {
		t.Errorf("only %d pages were found", checked)
	}
}

// The site has no code of its own, and its lock file has no address: another machine has another registry.
func TestTheSiteIsConfigured(t *testing.T) {
	if lines := strings.Count(read(t, "../hack/site/.vitepress/config.mjs"), "\n"); lines > 100 {
		t.Errorf("the configuration of the site has %d lines", lines)
	}
	if lock := read(t, "../hack/site/package-lock.json"); strings.Contains(lock, `"resolved"`) || !strings.Contains(lock, `"integrity"`) {
		t.Error("hack/site/package-lock.json has addresses, or no hashes: npm config set omit-lockfile-registry-resolved true")
	}
}
