// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// decodeFile reads YAML strictly.
func decodeFile(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.UnmarshalStrict(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// shownCRD is a CRD as Artifact Hub shows it.
type shownCRD struct{ Kind, Version, Name, DisplayName, Description string }

// Artifact Hub shows the kinds of this version, with the samples as examples: the form of the annotations is that of
// https://artifacthub.io/docs/topics/annotations/helm/.
func TestArtifactHub(t *testing.T) {
	var chart struct{ Annotations map[string]string }
	text, err := os.ReadFile("../charts/modelbox-operator/Chart.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &chart)
	}
	if err != nil {
		t.Fatal(err)
	}
	annotation := func(name string, into any) {
		if err := yaml.UnmarshalStrict([]byte(chart.Annotations["artifacthub.io/"+name]), into); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var crds []shownCRD
	var examples []map[string]any
	var links []struct{ Name, URL string }
	annotation("crds", &crds)
	annotation("crdsExamples", &examples)
	annotation("links", &links)
	if len(links) == 0 || chart.Annotations["artifacthub.io/category"] != "ai-machine-learning" || chart.Annotations["artifacthub.io/operator"] != "true" {
		t.Errorf("the annotations are %v", chart.Annotations)
	}

	files, _ := filepath.Glob("crd/bases/*.yaml") // The pattern is well-formed.
	if len(files) != len(crds) || len(files) != len(examples) {
		t.Errorf("%d CRDs, and %d of them with %d examples in the chart", len(files), len(crds), len(examples))
	}
	for _, file := range files {
		var crd apiextensionsv1.CustomResourceDefinition
		decodeFile(t, file, &crd)
		kind := crd.Spec.Names.Kind
		i := slices.IndexFunc(crds, func(shown shownCRD) bool { return shown.Kind == kind })
		if i < 0 || crds[i].Name != crd.Name || crds[i].Version != crd.Spec.Versions[len(crd.Spec.Versions)-1].Name || crds[i].Description == "" {
			t.Errorf("the chart does not show %s as it is", crd.Name)
		}
		i = slices.IndexFunc(examples, func(example map[string]any) bool { return example["kind"] == kind })
		if want := sampleOf(t, kind); i < 0 || !cmp.Equal(want, examples[i]) {
			t.Errorf("%s: the example is not the sample: %s", kind, cmp.Diff(want, examples[max(i, 0)]))
		}
	}
}

// sampleOf returns the object of a kind in samples.
func sampleOf(t *testing.T, kind string) (object map[string]any) {
	t.Helper()
	files, _ := filepath.Glob("samples/*_" + strings.ToLower(kind) + ".yaml") // The pattern is well-formed.
	if len(files) != 1 {
		t.Fatalf("the samples of %s are %v", kind, files)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(text), "\n---\n")
	if err := yaml.UnmarshalStrict([]byte(documents[len(documents)-1]), &object); err != nil {
		t.Fatal(err)
	}
	return object
}
