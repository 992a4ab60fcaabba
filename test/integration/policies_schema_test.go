// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

var update = flag.Bool("update", false, "write testdata/fields.txt again")

// specOf returns the schema of the spec of a kind.
func specOf(t *testing.T, k kind) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	file := filepath.Join(testenv.Root(), "config", "crd", "bases", k.resource.Group+"_"+k.resource.Resource+".yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &crd); err != nil {
		t.Fatal(err)
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
}

// A field, or the scheme of a URI, that a later version of the operator has is refused before
// the policy lists it. The test is not parallel, because it changes CRDs.
func TestANewFieldIsRefused(t *testing.T) {
	tb := readTable(t)
	c, editor := tb.user(t, "honest"), tb.user(t, "edit")
	const schemes = `(?i)^((https|http|s3|hf|oci|pvc|nfs)://.*)?$`
	for _, test := range []struct {
		op, field, value, text string
		// path is where the API server has a value once the new schema is in effect.
		path []string
		want string
	}{
		{"add", "nextField", `{"type": "string"}`, `Genericdaemon {image: "a:1", nextField: a}`, []string{"nextField"}, "spec: the fields nextField may not be set"},
		{"add", "model/properties/nextField", `{"type": "string"}`, `model uri: https://a/b, nextField: a`, []string{"model", "nextField"}, "spec: the fields spec.model (nextField) may not be set"},
		{"replace", "model/properties/uri/pattern", `"` + schemes + `"`, `model uri: PVC://models/a`, []string{"model", "uri"}, "spec.model.uri must begin with https://"},
		{"replace", "modelFileURL/pattern", `"` + schemes + `"`, "alias nfs://server/models", []string{"modelFileURL"}, "spec.modelFileURL must begin with https://"},
	} {
		of, _, s := tb.parse(t, test.text)
		k := of[0]
		patchCRD(t, k, `{"op": "`+test.op+`", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/`+test.field+`", "value": `+test.value+`}`)
		// Until the new schema is in effect, the field is dropped, or the value is refused.
		err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			stored, err := k.in(editor, editor.namespace).Create(ctx, k.object("a", s), metav1.CreateOptions{DryRun: dryRun})
			if apierrors.IsInvalid(err) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			_, found, err := unstructured.NestedString(stored.Object, append([]string{"spec"}, test.path...)...)
			return found, err
		})
		if err != nil {
			t.Fatal(err)
		}
		tb.check(t, c, test.text, byDelegated, test.want)
	}
}

// patchCRD patches the CRD of a kind with an operation of a JSON patch.
func patchCRD(t *testing.T, k kind, operation string) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: k.resource.GroupResource().String()}}
	if err := admin.Patch(t.Context(), crd, client.RawPatch(types.JSONPatchType, []byte("["+operation+"]"))); err != nil {
		t.Fatal(err)
	}
}

// All fields of the schemas, below the first level too: a type of Kubernetes may get a
// field with which a delegated user reaches more than the policy knows. When a field is added, decide
// whether a delegated user may set it: if so, add it to specFields in delegated.yaml, and bound there
// what it may hold.
func TestEveryFieldOfASpecIsConsidered(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, k := range kinds {
		lines = append(lines, fieldsOf(k.name+".spec", specOf(t, k))...)
	}
	got := strings.Join(lines, "\n") + "\n"
	const file = "testdata/fields.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the schemas have other fields (-want +got). Decide whether a delegated user may set them, change delegated.yaml "+
			"if not, and run 'go test ./test/integration -update':\n%s", diff)
	}
}

func fieldsOf(path string, schema apiextensionsv1.JSONSchemaProps) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		out = append(out, path+"."+name)
		out = append(out, fieldsOf(path+"."+name, schema.Properties[name])...)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		out = append(out, fieldsOf(path+"[]", *schema.Items.Schema)...)
	}
	return out
}

// nameless are the fields called like a name that refer to no object, or to none that gives
// permissions. All others are references, which the policy must bound.
var nameless = map[string]string{
	"spec.name":             "the name of a container",
	"spec.ports[].name":     "the name of a port",
	"spec.models[].name":    "the name of a volume",
	"spec.schedules[].name": "the name of a schedule",
	"spec.envs[].name":      "the name of a variable",
	"spec.envs[].valueFrom.resourceFieldRef.containerName": "a container of the pod",
	"spec.readinessProbe.httpGet.httpHeaders[].name":       "the name of a header",
	"spec.livenessProbe.httpGet.httpHeaders[].name":        "the name of a header",
	"spec.startupProbe.httpGet.httpHeaders[].name":         "the name of a header",
	"spec.resources.claims[].name":                         "an item of podTemplate.spec.resourceClaims, which may not be set",
	"spec.autoscaling.metrics[].resource.name":             "a resource of the object's own pods",
	"spec.autoscaling.metrics[].containerResource.name":    "a resource of the object's own pods",
	"spec.autoscaling.metrics[].pods.metric.name":          "a metric of the object's own pods",
}

// A delegated user may not name an object that the Namespace does not list, in any field: a
// new field that refers to an object needs an expression in the policy, not only its name in
// specFields.
func TestEveryReferenceIsBounded(t *testing.T) {
	t.Parallel()
	// With these roles, no other policy refuses the fields.
	c := readTable(t).user(t, "bounded")
	found := map[string]bool{}
	for _, k := range kinds {
		for _, r := range referencesIn("spec", "spec", specOf(t, k), func(s any) any { return s }) {
			found[r.path], found[k.name+"."+r.path] = true, true
			if nameless[r.path] != "" {
				continue
			}
			if err := k.try(t, c, "a", r.spec.(map[string]any)); outcomeOf(err) != byDelegated {
				t.Errorf("%s of %s names an object: %v. Bound it in delegated.yaml, or add it to nameless", r.path, k.name, err)
			}
		}
	}
	for path := range nameless {
		if !found[path] {
			t.Errorf("nameless has %s, which does not exist", path)
		}
	}
	for _, path := range []string{"ModelBox.spec.imagePullSecrets[].name", "ModelBox.spec.model.credentials.name",
		"ModelBox.spec.model.claim", "ModelBox.spec.model.uri", "ModelBox.spec.modelFileURL",
		"App.spec.envFrom[].secretRef.name", "App.spec.route.gateway.name", "App.spec.autoscaling.metrics[].object.describedObject.name", "UnitedDeployment.spec.deploymentName", "Eru.spec.deploymentName", "Eru.spec.deploymentname"} {
		if !found[path] {
			t.Errorf("%s was not found", path)
		}
	}
}

// A reference is a field that names an object, and a spec in which it names one that no
// Namespace of these tests lists.
type reference struct {
	path string
	spec any
}

var likeAName = regexp.MustCompile(`(?i)(name|secret|configmap|claim|account|volume|class|ref|deployment)s?$`)

// likeAURI is a field that may name an object in a URI.
var likeAURI = regexp.MustCompile(`(?i)ur[il]s?$`)

// referencesIn returns the references in a field. within returns the spec that has a value in
// this field.
func referencesIn(path, field string, schema apiextensionsv1.JSONSchemaProps, within func(any) any) []reference {
	switch {
	case schema.Type == "string" && likeAName.MatchString(field):
		return []reference{{path, within("root")}}
	case schema.Type == "string" && likeAURI.MatchString(field):
		return []reference{{path, within("pvc://root/models")}}
	}
	var out []reference
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		out = append(out, referencesIn(path+"."+name, name, schema.Properties[name], func(value any) any {
			object := required(schema)
			object[name] = value
			return within(object)
		})...)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		out = append(out, referencesIn(path+"[]", field, *schema.Items.Schema, func(value any) any { return within([]any{value}) })...)
	}
	return out
}

// required returns an object with the required fields of a schema. A uri, and the image of a ModelBox, are required by CEL.
func required(schema apiextensionsv1.JSONSchemaProps) map[string]any {
	object := map[string]any{}
	if _, ok := schema.Properties["resourceType"]; ok {
		object["image"] = "a"
	}
	if _, ok := schema.Properties["uri"]; ok {
		object["uri"] = "https://a/b"
	}
	for _, name := range schema.Required {
		object[name] = valueOf(schema.Properties[name])
	}
	return object
}

// valueOf returns a value of the type of a schema.
func valueOf(schema apiextensionsv1.JSONSchemaProps) any {
	switch {
	case schema.Type == "integer" || schema.XIntOrString:
		return int64(1)
	case schema.Type == "boolean":
		return true
	case schema.Type == "array":
		return []any{valueOf(*schema.Items.Schema)}
	case schema.Type == "object":
		return required(schema)
	}
	return "a"
}
