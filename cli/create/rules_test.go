// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package create_test

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
)

// violations are parts of a spec, each of which a CEL rule of the CRD does not allow. They are
// tried with each kind that has the fields.
var violations = []string{
	`autoscaling: {maxReplicas: 3}, schedules: [{name: a, schedule: 0 8 * * *, replicas: 2}]`,
	`autoscaling: {maxReplicas: 2, minReplicas: 3}`,
	`autoscaling: {maxReplicas: 2, minReplicas: 0}`,
	`autoscaling: {maxReplicas: 2, prometheus: {serverAddress: "http://p:9090", query: "1", target: "1"}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}, resources: {requests: {cpu: 1}}`,
	`autoscaling: {maxReplicas: 2, prometheus: {serverAddress: "http://p:9090", query: "1", target: "1", cooldownSeconds: 60}}`,
	`disruption: {}`,
	`disruption: {maxUnavailable: 1, minAvailable: 1}`,
	`disruption: {maxUnavailable: 0%}`,
	`disruption: {minAvailable: 0}`,
	`monitoring: {interval: 25h}, ports: [{port: 80}]`,
	`monitoring: {port: 70000}, ports: [{port: 80}]`,
	`ports: [{name: a, port: 80}, {name: a, port: 81}]`,
	`ports: [{name: a, port: 80, nodePort: 30001}, {name: b, port: 81, nodePort: 30001}]`,
	`ports: [{name: "11", port: 80}]`,
	`ports: [{port: 80, targetPort: 70000}]`,
	`ports: [{port: 80, nodePort: 30001}], serviceType: ClusterIP`,
	`ports: [{port: 80}], route: {hosts: [a.example.com], gateway: {name: g}, path: /a//b}`,
	`selector: {` + strings.Repeat("a", 250) + ".com/" + strings.Repeat("b", 63) + `: a}`,
	`windows: [{schedule: 0 2 * * *, duration: 30s}], restartOnChange: Referenced`,
	`windows: [{schedule: 0 2 * * *, duration: 30s}], enabled: true`,
	`image: null`,
	`rollingUpdate: 0`,
	`model: {uri: "https://a/b"}, modelFileURL: "https://a/c"`,
	`model: {sizeLimit: 1Gi}`,
	`modelFileURL: "http://a/b"`,
	`modelFileURL: "oci://a/b:1"`,
	`model: {uri: "http://a/b"}`,
	`model: {uri: "oci://a/b:1"}`,
	`model: {uri: "https://a/b", mountPath: a//b}`,
	`model: {uri: "https://a/b", mountPath: /m}, models: [{name: a, uri: "https://a/c", mountPath: /m/n}]`,
	`models: [{name: a, mountPath: /m}]`,
	`models: [{name: a, uri: "http://a/b", mountPath: /m}]`,
	`models: [{name: a, uri: "oci://a/b:1", mountPath: /m}]`,
	`models: [{name: a, uri: "https://a/b", mountPath: m}]`,
	`models: [{name: a, uri: "https://a/b", mountPath: /m}, {name: b, uri: "https://a/c", mountPath: /m/n}]`,
	`strategy: {type: A}`,
	`strategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}`,
	`strategy: {rollingUpdate: {maxSurge: A}}`,
	`strategy: {rollingUpdate: {maxUnavailable: A}}`,
	`strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}`,
	`deploymentName: a, deploymentname: b`,
}

// valid are specs without errors.
var valid = map[string]string{
	"ModelBox": "image: a:1", "App": "image: a:1", "Genericdaemon": "image: a:1", "UnitedDeployment": "deploymentName: a, replicas: 1", "Eru": "enabled: true",
}

// objects returns the valid object of a kind, and those with a violation.
func objects(t *testing.T, kind *kinds.Kind) (out []*unstructured.Unstructured) {
	t.Helper()
	fields := kind.CRD().Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	add := func(name, violation string) {
		base, err := yaml.YAMLToJSON([]byte("{" + valid[kind.GVK.Kind] + "}"))
		if err != nil {
			t.Fatal(err)
		}
		change, err := yaml.YAMLToJSON([]byte("{" + violation + "}"))
		if err != nil {
			t.Fatal(err)
		}
		var has map[string]any
		if err := json.Unmarshal(change, &has); err != nil {
			t.Fatal(err)
		}
		for name := range has {
			if _, ok := fields[name]; !ok {
				return
			}
		}
		spec, err := jsonpatch.MergePatch(base, change)
		obj := &unstructured.Unstructured{}
		if err == nil {
			err = obj.UnmarshalJSON([]byte(`{"apiVersion":"` + kind.GVK.GroupVersion().String() + `","kind":"` + kind.GVK.Kind + `","metadata":{"name":"` + name + `"},"spec":` + string(spec) + `}`))
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, obj)
	}
	add("web", "")
	add("1a", "")
	for _, violation := range violations {
		add("web", violation)
	}
	return out
}

// rule is a CEL rule of a kind for new objects, in a schema that has no other rule.
type rule struct {
	text      string
	schema    *schema.Structural
	validator *cel.Validator
}

func rulesOf(t *testing.T, kind *kinds.Kind) (out []rule) {
	t.Helper()
	const key = "x-kubernetes-validations"
	var root any
	data, err := json.Marshal(kind.CRD().Spec.Versions[0].Schema.OpenAPIV3Schema)
	if err == nil {
		err = json.Unmarshal(data, &root)
	}
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]map[string]any{}
	var walk func(at string, node any)
	walk = func(at string, node any) {
		if of, ok := node.(map[string]any); ok {
			if of[key] != nil {
				places[at] = of
			}
			for name, child := range of {
				walk(at+"/"+name, child)
			}
		}
	}
	walk("", root)
	rules := map[string]any{}
	for at, place := range places {
		rules[at] = place[key]
		delete(place, key)
	}
	for at, place := range places {
		for _, one := range rules[at].([]any) {
			of := one.(map[string]any)
			text := of["rule"].(string)
			if strings.Contains(text, "oldSelf") && of["optionalOldSelf"] == nil {
				continue // It is one of updates: TestImmutable.
			}
			place[key] = []any{one}
			alone := structural(t, root)
			out = append(out, rule{at + ": " + text, alone, cel.NewValidator(alone, true, celconfig.PerCallLimit)})
		}
		delete(place, key)
	}
	return out
}

func structural(t *testing.T, root any) *schema.Structural {
	t.Helper()
	props, internal := &apiextensionsv1.JSONSchemaProps{}, &apiextensions.JSONSchemaProps{}
	data, err := json.Marshal(root)
	if err == nil {
		err = json.Unmarshal(data, props)
	}
	if err == nil {
		err = apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil)
	}
	out, invalid := schema.NewStructural(internal)
	if err = cmp.Or(err, invalid); err != nil {
		t.Fatal(err)
	}
	return out
}

// Each CEL rule refuses an object that is refused here as well, by one error: that of the rule, or
// of the operator's rule of the same meaning.
func TestEachRuleOfTheSchemaIsOneError(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds.All {
		t.Run(kind.GVK.Kind, func(t *testing.T) {
			t.Parallel()
			rules := rulesOf(t, kind)
			refused := make([]bool, len(rules))
			for i, obj := range objects(t, kind) {
				r := create.Dry(kind, create.Request{Object: obj, Namespace: "default"})
				spec, _ := obj.MarshalJSON()
				if errs := len(r.Invalid) + len(r.Strict); errs != min(i, 1) {
					t.Errorf("%.300s has %d errors: %v", spec, errs, r.Err())
				}
				for i, rule := range rules {
					errs, _ := rule.validator.Validate(t.Context(), nil, rule.schema, obj.Object, nil, celconfig.RuntimeCELCostBudget)
					refused[i] = refused[i] || len(errs) > 0
				}
			}
			for i, rule := range rules {
				if !refused[i] {
					t.Errorf("no object is refused by the rule %s", rule.text)
				}
			}
			t.Logf("%d rules", len(rules))
		})
	}
}
