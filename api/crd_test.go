// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/api"
)

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

func TestEveryKindHasACRD(t *testing.T) {
	crds := crds(t)
	taken := map[string]string{"app": "other projects", "apps": "other projects", "ud": "other projects"}
	for _, gvk := range kinds(t) {
		crd := crds[gvk.Kind]
		if crd == nil {
			t.Errorf("%s has no CRD", gvk.Kind)
			continue
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

// TestEveryNodeHasABound walks the schemas. What has no bound costs the webhook, the
// controller and every client as much as its author likes, and a number that its Go
// type does not hold cannot be decoded at all.
func TestEveryNodeHasABound(t *testing.T) {
	for kind, crd := range crds(t) {
		for _, version := range crd.Spec.Versions {
			for name, property := range version.Schema.OpenAPIV3Schema.Properties {
				if name != "metadata" { // The API server's own.
					for _, problem := range unbounded(kind+"."+name, property) {
						t.Error(problem)
					}
				}
			}
		}
	}
}

// unbounded returns a sentence for each node without a bound.
func unbounded(path string, schema apiextensionsv1.JSONSchemaProps) []string {
	if schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields {
		if strings.HasSuffix(path, ".spec.podTemplate") {
			return nil // Admission bounds its bytes.
		}
		return []string{path + " preserves unknown fields"}
	}
	problems := missing(path, schema)
	for name, property := range schema.Properties {
		problems = append(problems, unbounded(path+"."+name, property)...)
	}
	if schema.Items != nil {
		problems = append(problems, unbounded(path+"[]", *schema.Items.Schema)...)
	}
	if schema.AdditionalProperties != nil {
		problems = append(problems, unbounded(path+"{}", *schema.AdditionalProperties.Schema)...)
	}
	return problems
}

// missing returns a sentence for each bound that a node lacks.
func missing(path string, schema apiextensionsv1.JSONSchemaProps) (problems []string) {
	need := func(present bool, what string) {
		if !present {
			problems = append(problems, fmt.Sprintf("%s (%s) has no %s", path, schema.Type, what))
		}
	}
	number := schema.Type == "integer" || schema.Type == "number" || schema.XIntOrString
	text := schema.Type == "string" && len(schema.Enum) == 0 || schema.XIntOrString
	need(!number || schema.Minimum != nil && schema.Maximum != nil, "minimum or maximum")
	need(!text || schema.MaxLength != nil, "maxLength")
	need(schema.Type != "array" || schema.MaxItems != nil, "maxItems")
	need(schema.AdditionalProperties == nil || schema.MaxProperties != nil, "maxProperties")
	need(schema.Type != "" || schema.XIntOrString, "type")
	if number && schema.Maximum != nil {
		largest := map[string]float64{"int32": math.MaxInt32}[schema.Format]
		if largest == 0 {
			largest = 1e18
		}
		need(*schema.Maximum <= largest && *schema.Minimum >= -largest, "bounds that its Go type holds")
	}
	if schema.Format == "date-time" {
		need(schema.Pattern != "" && !regexp.MustCompile(schema.Pattern).MatchString("9999-12-31T23:59:59-01:00"), "pattern that requires Z")
	}
	return problems
}

// TestTheWalkSeesWhatHasNoBound is the control of the test above.
func TestTheWalkSeesWhatHasNoBound(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{
		`{"type":"string"}`,
		`{"type":"string","maxLength":20,"format":"date-time"}`,
		`{"type":"integer","minimum":0}`,
		`{"type":"integer","format":"int32","minimum":0,"maximum":3000000000}`,
		`{"type":"integer","format":"int64","minimum":0,"maximum":9223372036854775807}`,
		`{"x-kubernetes-int-or-string":true,"maxLength":1}`,
		`{"x-kubernetes-int-or-string":true,"minimum":0,"maximum":1}`,
		`{"type":"array","items":{"type":"boolean"}}`,
		`{"type":"array","maxItems":1,"items":{"type":"string"}}`,
		`{"type":"object","additionalProperties":{"type":"boolean"}}`,
		`{"type":"object","maxProperties":1,"additionalProperties":{"type":"string"}}`,
		`{"type":"object","properties":{"a":{"type":"string"}}}`,
		`{"type":"object","x-kubernetes-preserve-unknown-fields":true}`,
		`{}`,
	} {
		var props apiextensionsv1.JSONSchemaProps
		if err := json.Unmarshal([]byte(schema), &props); err != nil {
			t.Fatal(err)
		}
		if problems := unbounded("", props); len(problems) != 1 {
			t.Errorf("in %s these were found: %q", schema, problems)
		}
	}
}

// TestPatternsAdmitWhatGoDecodes takes the patterns of quantities and times out of
// the schemas.
func TestPatternsAdmitWhatGoDecodes(t *testing.T) {
	spec := crds(t)["ModelBox"].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	quantity := regexp.MustCompile(spec.Properties["resources"].Properties["limits"].AdditionalProperties.Schema.Pattern)
	for _, text := range []string{"0", "1", "100m", "1.5", "1.", ".5", "2Gi", "1e3", "1E-3", "999999999999999999E", "1e99", "0.000000001", "1e-99", "100u", "5n"} {
		q, err := resource.ParseQuantity(text)
		if !quantity.MatchString(text) || err != nil {
			t.Errorf("the quantity %q: the pattern says %t, Go %v", text, quantity.MatchString(text), err)
		}
		_, _ = q.Cmp(resource.MustParse("1")), q.String() // They end.
	}
	for _, text := range []string{"1e.5", "1e1.5", "1e99999999999999999999", "1e999999999", "1e100", "", "m", "1 ", "1\n", "-1", "1Zi", "1e", "9999999999999999999"} {
		if quantity.MatchString(text) {
			t.Errorf("the quantity %q is admitted", text)
		}
	}
	status := crds(t)["Eru"].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	instant := regexp.MustCompile(status.Properties["lastScheduleTime"].Pattern)
	for _, text := range []string{"0000-01-01T00:00:00Z", "2026-01-02T03:04:05Z", "9999-12-31T23:59:59Z"} {
		var decoded metav1.Time
		if err := json.Unmarshal([]byte(`"`+text+`"`), &decoded); err != nil || !instant.MatchString(text) {
			t.Errorf("the time %q: the pattern says %t, Go %v", text, instant.MatchString(text), err)
		}
		if again, err := json.Marshal(decoded); err != nil || string(again) != `"`+text+`"` {
			t.Errorf("the time %q is written as %s (%v)", text, again, err)
		}
	}
	for _, text := range []string{
		"9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00", "2026-01-02T03:04:05+08:00", "2026-01-02T03:04:05.5Z", "2026-01-02T03:04:60Z",
		"2026-01-02T24:00:00Z", "2026-01-02t03:04:05z", "2026-01-02", "",
	} {
		if instant.MatchString(text) {
			t.Errorf("the time %q is admitted", text)
		}
	}
}
