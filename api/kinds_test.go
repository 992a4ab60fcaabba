// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"os"
	"path/filepath"
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
				{"controller/cache/raw.go", "." + gvk.Kind + "](c)"},
				{"cli/kinds/kinds.go", "\tkind(" + lower + ".Kind(), "},
				{"config/policies/requester.yaml", "apiGroups: [" + gvk.Group + "]\n"},
				{"config/policies/delegated.yaml", "apiGroups: [" + gvk.Group + "]\n"},
				{"config/policies/controller.yaml", "/status." + gvk.Group + "'"},
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
