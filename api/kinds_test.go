// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/modelbox-operator/modelbox-operator/api"
)

// kinds are the project's kinds, as the scheme knows them.
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

// A kind is whole when each of these is there: CONTRIBUTING.md is the same list
// for people.
func TestEveryKindIsWhole(t *testing.T) {
	all := kinds(t)
	if len(all) != 5 {
		t.Errorf("the scheme has %d kinds, want 5: %v", len(all), all)
	}
	for _, gvk := range all {
		t.Run(gvk.Kind, func(t *testing.T) {
			lower := strings.ToLower(gvk.Kind)
			for _, file := range []string{
				"config/samples/" + lower + ".yaml",
				"webhook/" + lower + "/default.go",
				"webhook/" + lower + "/validate.go",
				"webhook/" + lower + "/webhook.go",
				"controller/" + lower + "/controller.go",
				"docs/" + lower + ".md",
			} {
				if _, err := os.Stat("../" + file); err != nil {
					t.Errorf("it has no %s", file)
				}
			}
			path := strings.ReplaceAll(gvk.Group, ".", "-") + "-" + gvk.Version + "-" + lower
			for _, mention := range []struct{ file, text string }{
				{"config/samples/" + lower + ".yaml", "kind: " + gvk.Kind + "\n"},
				{"webhook/main.go", "\t" + lower + ".SetupWebhookWithManager,\n"},
				{"controller/main.go", "\t" + lower + ".SetupWithManager,\n"},
				{"config/webhook/generated/manifests.yaml", "path: /mutate-" + path + "\n"},
				{"config/webhook/generated/manifests.yaml", "path: /validate-" + path + "\n"},
				{"controller/kinds_test.go", "\t\"" + gvk.Kind + "\": {\n"},
				{"webhook/kinds_test.go", "\"" + lower + "\""},
				{"README.md", gvk.Kind},
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
