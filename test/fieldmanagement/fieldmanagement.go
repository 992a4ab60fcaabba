// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fieldmanagement has the API server's own field management for the kinds of the CRDs,
// so that tests can play what several clients write to an object.
package fieldmanagement

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// Schema returns the schema in the CRD of a kind. It panics if it cannot be read: it is a file of
// the repository.
func Schema(gvk schema.GroupVersionKind) map[string]any {
	singular := strings.ToLower(gvk.Kind)
	files, err := filepath.Glob(filepath.Join(testenv.Root(), "config", "crd", "bases", gvk.Group+"_"+singular+"*s.yaml"))
	must(err)
	if len(files) != 1 {
		panic(fmt.Sprintf("%d CRDs of %s", len(files), gvk))
	}
	text, err := os.ReadFile(files[0])
	must(err)
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct{ OpenAPIV3Schema map[string]any }
			}
		}
	}
	must(yaml.Unmarshal(text, &definition))
	return definition.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// New returns the field manager of the API server for a kind. It panics like Schema.
func New(gvk schema.GroupVersionKind) *managedfields.FieldManager {
	content := maps.Clone(Schema(gvk))
	content["x-kubernetes-group-version-kind"] = []any{map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}}
	data, err := json.Marshal(content)
	must(err)
	var openAPI spec.Schema
	must(json.Unmarshal(data, &openAPI))
	converter, err := managedfields.NewTypeConverter(map[string]*spec.Schema{gvk.Kind: &openAPI}, false)
	must(err)
	return managedfieldstest.NewFakeFieldManager(converter, gvk)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
