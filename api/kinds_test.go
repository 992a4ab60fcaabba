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
	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
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
				{"kinds/all/all.go", "modelbox-operator/kinds/" + lower + "\"\n"},
				{"controller/main.go", " " + lower + ".SetupWithManager"},
				{"config/webhook/generated/manifests.yaml", "path: /mutate-" + path + "\n"},
				{"config/webhook/generated/manifests.yaml", "path: /validate-" + path + "\n"},
				{"config/argocd/kustomization.yaml", "health." + gvk.Group + "_" + gvk.Kind + "=health.lua\n"},
				{"config/aggregated-roles/roles.yaml", "apiGroups: [" + gvk.Group + "]\n"},
				{"controller/cache/raw.go", "." + gvk.Kind + "](c)"},
				{"controller/admission.go", "\t\"" + gvk.Kind + "\": "},
				{"charts/modelbox-operator/values.schema.json", "\"" + gvk.Kind + "\""},
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

// Each package of types has what programs that use kubebuilder or code-generator expect of one.
func TestEveryGroupIsRegistered(t *testing.T) {
	for _, group := range []struct {
		version, alias schema.GroupVersion
		builder        *runtime.SchemeBuilder
		kind           func(string) schema.GroupKind
		resource       func(string) schema.GroupResource
		name, plural   string
	}{
		{modelv1.SchemeGroupVersion, modelv1.GroupVersion, &modelv1.SchemeBuilder, modelv1.Kind, modelv1.Resource, "ModelBox", "modelboxes"},
		{appv1.SchemeGroupVersion, appv1.GroupVersion, &appv1.SchemeBuilder, appv1.Kind, appv1.Resource, "App", "apps"},
		{mydomainv1beta1.SchemeGroupVersion, mydomainv1beta1.GroupVersion, &mydomainv1beta1.SchemeBuilder, mydomainv1beta1.Kind, mydomainv1beta1.Resource, "Genericdaemon", "genericdaemons"},
		{extensionv1.SchemeGroupVersion, extensionv1.GroupVersion, &extensionv1.SchemeBuilder, extensionv1.Kind, extensionv1.Resource, "UnitedDeployment", "uniteddeployments"},
		{mtsrev1.SchemeGroupVersion, mtsrev1.GroupVersion, &mtsrev1.SchemeBuilder, mtsrev1.Kind, mtsrev1.Resource, "Eru", "erus"},
	} {
		kind, resource := group.kind(group.name), group.resource(group.plural)
		if group.alias != group.version || kind != group.version.WithKind(group.name).GroupKind() || resource != group.version.WithResource(group.plural).GroupResource() {
			t.Errorf("%s: GroupVersion is %s, Kind %s and Resource %s", group.version, group.alias, kind, resource)
		}
		scheme := runtime.NewScheme()
		if err := group.builder.AddToScheme(scheme); err != nil || !scheme.Recognizes(group.version.WithKind(group.name)) {
			t.Errorf("SchemeBuilder of %s does not add %s: %v", group.version, group.name, err)
		}
	}
}
