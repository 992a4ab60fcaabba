// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/modelbox-operator/modelbox-operator/api"
)

// kinds returns the project's kinds, as the scheme knows them.
func kinds(t *testing.T) []schema.GroupVersionKind {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var out []schema.GroupVersionKind
	for gvk := range scheme.AllKnownTypes() {
		// Beside each kind a group holds its list and the options of requests.
		if gvk.Group != "" && scheme.Recognizes(gvk.GroupVersion().WithKind(gvk.Kind+"List")) {
			out = append(out, gvk)
		}
	}
	return out
}

// A kind is whole when each of these is there. CONTRIBUTING.md has the same list, in words.
func TestEveryKindIsWhole(t *testing.T) {
	all := kinds(t)
	if types, err := filepath.Glob("*/*/*_types.go"); err != nil || len(types) != len(all) || len(all) == 0 {
		t.Errorf("the scheme has the kinds %v, and the files of types are %v (%v)", all, types, err)
	}
	for _, gvk := range all {
		t.Run(gvk.Kind, func(t *testing.T) {
			lower := strings.ToLower(gvk.Kind)
			group, _, _ := strings.Cut(gvk.Group, ".")
			sample := "config/samples/" + group + "_" + gvk.Version + "_" + lower + ".yaml"
			for _, file := range []string{
				sample,
				"kinds/" + lower + "/default.go",
				"kinds/" + lower + "/validate.go",
				"kinds/" + lower + "/kind.go",
				"controller/" + lower + "/controller.go",
				"docs/" + lower + ".md",
				"e2e/" + lower + "_test.go",
			} {
				if _, err := os.Stat("../" + file); err != nil {
					t.Errorf("it has no %s", file)
				}
			}
			path := strings.ReplaceAll(gvk.Group, ".", "-") + "-" + gvk.Version + "-" + lower
			for _, mention := range []struct{ file, text string }{
				{sample, "kind: " + gvk.Kind + "\n"},
				{"webhook/webhook.go", "\tadmission.Register(server, " + lower + ".Kind())\n"},
				{"controller/main.go", "\t" + lower + ".SetupWithManager"},
				{"config/webhook/generated/manifests.yaml", "path: /mutate-" + path + "\n"},
				{"config/webhook/generated/manifests.yaml", "path: /validate-" + path + "\n"},
				{"config/argocd/kustomization.yaml", "health." + gvk.Group + "_" + gvk.Kind + "=health.lua\n"},
				{"config/aggregated-roles/roles.yaml", "apiGroups: [" + gvk.Group + "]\n"},
				{"controller/kinds_test.go", "\t\"" + gvk.Kind + "\": {\n"},
				{"docs/" + lower + ".md", "(api.md#" + lower + "spec)"},
				{"docs/api.md", "\n### " + gvk.Kind + "\n"},
				{"README.md", "\n| [" + gvk.Kind + "](docs/" + lower + ".md) | `" + gvk.GroupVersion().String() + "` |"},
			} {
				data, err := os.ReadFile("../" + mention.file)
				if err != nil {
					t.Error(err)
					continue
				}
				if !strings.Contains(string(data), mention.text) {
					t.Errorf("%s does not have %q", mention.file, strings.TrimSpace(mention.text))
				}
			}
		})
	}
}

// complete are files that name all kinds but one on purpose.
var complete = map[string]string{
	"config/policies/controller.yaml":          "the kinds that have children; a UnitedDeployment has none, and an Eru is in it as a resource",
	"test/integration/policies_schema_test.go": "it has the kinds as variables",
	"controller/stale_cache_test.go":           "a Genericdaemon has the children of an App, of another type",
	"controller/cache/transform.go":            "a kind with children is its group there",
	"controller/cache/transform_test.go":       "a kind with children is its group there",
}

// Where all other kinds are named, in a table, a list, a test or a page, a kind is named
// too. So a new kind is missing from each of these until somewhere in the file it is
// considered.
func TestNoListLacksAKind(t *testing.T) {
	all := map[string]*regexp.Regexp{}
	for _, gvk := range kinds(t) {
		lower := strings.ToLower(gvk.Kind)
		all[gvk.Kind] = regexp.MustCompile(gvk.Kind + `(es|s|List|Spec|Status)?([^A-Za-z-]|$)|["/ {\[]` + lower + `(es|s)?["./,\]]`)
	}
	err := filepath.WalkDir("..", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(filepath.ToSlash(file), "../")
		if entry.IsDir() {
			if skipped.MatchString(name + "/") {
				return fs.SkipDir
			}
			return nil
		}
		if !handwritten.MatchString(name) || skipped.MatchString(name) {
			return nil
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var missing []string
		for kind, named := range all {
			if !named.Match(data) {
				missing = append(missing, kind)
			}
		}
		if len(missing) == 1 && complete[name] == "" {
			t.Errorf("%s names every kind but %s", name, missing[0])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	handwritten = regexp.MustCompile(`\.(go|md|sh|yaml)$`)
	skipped     = regexp.MustCompile(`^(\.git|bin|dist|api/client|charts|api/kinds_test\.go|config/crd|docs/api\.md)|/(generated|testdata)/|/zz_generated`)
)
