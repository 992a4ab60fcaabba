// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/api"
)

// maxApplied is the size of an annotation: kubectl's client-side apply keeps the
// whole manifest, as JSON, in one.
const maxApplied = 262144

func crds(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob("../config/crd/bases/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out[crd.Spec.Names.Kind] = crd
	}
	return out
}

func TestEveryKindHasACRDThatCanBeApplied(t *testing.T) {
	crds := crds(t)
	taken := map[string]string{"app": "other projects", "apps": "other projects", "ud": "other projects"}
	for _, gvk := range kinds(t) {
		crd := crds[gvk.Kind]
		if crd == nil {
			t.Errorf("%s has no CRD", gvk.Kind)
			continue
		}
		data, err := json.Marshal(crd)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) >= maxApplied {
			t.Errorf("the CRD of %s has %d bytes as JSON, of %d", gvk.Kind, len(data), maxApplied)
		}
		names := crd.Spec.Names
		if len(names.Categories) != 1 || names.Categories[0] != api.Category {
			t.Errorf("%s is in categories %v, want %s", gvk.Kind, names.Categories, api.Category)
		}
		for _, short := range names.ShortNames {
			if owner, clash := taken[short]; clash {
				t.Errorf("the short name %q of %s belongs to %s", short, gvk.Kind, owner)
			}
			taken[short] = gvk.Kind
		}
		protected := strings.HasSuffix(crd.Spec.Group, ".k8s.io")
		if _, approved := crd.Annotations["api-approved.kubernetes.io"]; protected && !approved {
			t.Errorf("%s is in a protected group and lacks the annotation that lets it in", gvk.Kind)
		}
	}
}

// A field without a description is a hole in "kubectl explain".
func TestEveryFieldExplainsItself(t *testing.T) {
	for kind, crd := range crds(t) {
		for _, version := range crd.Spec.Versions {
			root := version.Schema.OpenAPIV3Schema
			for name, property := range root.Properties {
				if name == "metadata" {
					continue // Its text is the API server's.
				}
				explains(t, kind+"."+name, property)
			}
		}
	}
}

func explains(t *testing.T, path string, schema apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	if strings.TrimSpace(schema.Description) == "" && !strings.HasSuffix(path, "[]") {
		t.Errorf("%s has no description", path)
	}
	for name, property := range schema.Properties {
		explains(t, path+"."+name, property)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		explains(t, path+"[]", *schema.Items.Schema)
	}
}
