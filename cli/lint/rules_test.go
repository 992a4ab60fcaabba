// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/lint"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

// violation is a part of a spec, and the error that lint finds for it.
type violation [2]string

var longKey = strings.Repeat("a", 250) + ".com/" + strings.Repeat("b", 63)

// violations are those of a CEL rule of a CRD. Each is tried with all kinds that have its fields. The
// one without a spec is an object of the name 1a.
var violations = []violation{
	{"", "metadata.name: Invalid value: \"1a\": " + nameRule},
	{`autoscaling: {maxReplicas: 3}, schedules: [{name: a, schedule: 0 8 * * *, replicas: 2}]`,
		`spec.autoscaling: Forbidden: may not be set together with schedules, because both set replicas; remove one of them`},
	{`autoscaling: {maxReplicas: 2, minReplicas: 3}`,
		`spec.autoscaling.minReplicas: Invalid value: 3: must be less than or equal to maxReplicas`},
	{`autoscaling: {maxReplicas: 2, minReplicas: 0}`,
		`spec.autoscaling.minReplicas: Invalid value: 0: only KEDA scales to zero replicas; set prometheus as well, or at least 1`},
	{`autoscaling: {maxReplicas: 2, prometheus: {serverAddress: "http://p:9090", query: "1", target: "1"}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}, resources: {requests: {cpu: 1}}`,
		`spec.autoscaling.metrics: Forbidden: may not be set together with prometheus; remove one of them`},
	{`autoscaling: {maxReplicas: 2, prometheus: {serverAddress: "http://p:9090", query: "1", target: "1", cooldownSeconds: 60}}`,
		`spec.autoscaling.prometheus.cooldownSeconds: Forbidden: only with minReplicas 0 or idleReplicas does KEDA remove the last replica; set one of them as well, or remove cooldownSeconds`},
	{`autoscaling: {minReplicas: 0, maxReplicas: 2, prometheus: {serverAddress: "http://p:9090", query: "1", target: "1", idleReplicas: 0}}`,
		`spec.autoscaling.prometheus.idleReplicas: Invalid value: 0: must be less than minReplicas, which is 0; remove idleReplicas, or set minReplicas to 1 or more`},
	{`disruption: {}`,
		`spec.disruption: Invalid value: must have exactly one of maxUnavailable and minAvailable`},
	{`disruption: {maxUnavailable: 1, minAvailable: 1}`,
		`spec.disruption: Invalid value: must have exactly one of maxUnavailable and minAvailable`},
	{`monitoring: {interval: 25h}, ports: [{port: 80}]`,
		`spec.monitoring.interval: Invalid value: "25h": must be a time from 1s to 24h, such as 30s`},
	{`ports: [{name: a, port: 80}, {name: a, port: 81}]`,
		`spec.ports[1].name: Duplicate value: "a"`},
	{`ports: [{name: a, port: 80, nodePort: 30001}, {name: b, port: 81, nodePort: 30001}]`,
		`spec.ports[1].nodePort: Duplicate value: 30001`},
	{`ports: [{name: "11", port: 80}]`,
		`spec.ports[0].name: Invalid value: "11": must be 1 to 15 lower-case letters, digits and single dashes, at least one of them a letter, with no dash at either end (RFC 6335)`},
	{`ports: [{port: 80, nodePort: 30001}], serviceType: ClusterIP`,
		`spec.ports[0].nodePort: Forbidden: nodePort may not be used if serviceType is ClusterIP; remove the nodePort or change serviceType`},
	{`ports: [{port: 80}], route: {hosts: [a.example.com], gateway: {name: g}, path: /a//b}`,
		`spec.route.path: Invalid value: "/a//b": must not contain an empty segment, a segment . or .., or %2F`},
	{`ports: [{port: 80}], route: {hosts: [a.example.com], gateway: {name: g}, split: [{name: a, weight: 50}, {name: b, weight: 51}]}`,
		`spec.route.split: Invalid value: 101: the weights must be at most 100 together`},
	{`ports: [{port: 80}], route: {hosts: [a.example.com], gateway: {name: g}, split: [{name: web, weight: 50}]}`,
		`spec.route.split[0].name: Invalid value: "web": is the Service of the object itself, which has what remains of 100 percent; remove it`},
	{`selector: {` + longKey + `: a}`,
		`spec.selector[` + longKey + `]: Invalid value: "` + longKey + `": prefix part must be no more than 253 bytes`},
	{`windows: [{schedule: 0 2 * * *, duration: 30s}], restartOnChange: Referenced`,
		`spec.windows[0].duration: Invalid value: "30s": must be 1m to 168h, in whole seconds`},
	{`windows: [{schedule: 0 2 * * *, duration: 30s}], enabled: true`,
		`spec.windows[0].duration: Invalid value: "30s": must be 1m to 168h, in whole seconds`},
	{`image: null`,
		`spec.image: Required value: specify an image such as registry.example.com/team/server:1.2`},
	{`model: {uri: "https://a/b"}, modelFileURL: "https://a/c"`,
		`spec.modelFileURL: Forbidden: is an alias of spec.model.uri, which has another value; remove one of them`},
	{`model: {sizeLimit: 1Gi}`,
		`spec.model.uri: Required value: such as https://models.example.com/bert.tar.zst; set it, or remove spec.model`},
	{`modelFileURL: "http://a/b"`,
		`spec.model.sha256: Required value: http:// has nothing else that protects what is fetched; set it, or use https://`},
	{`modelFileURL: "oci://a/b:1"`,
		`spec.modelFileURL: Invalid value: "oci://a/b:1": must have the digest of the image (oci://registry.example.com/team/model@sha256:...), because a tag can stand for another one later`},
	{`model: {uri: "http://a/b"}`,
		`spec.model.sha256: Required value: http:// has nothing else that protects what is fetched; set it, or use https://`},
	{`model: {uri: "oci://a/b:1"}`,
		`spec.model.uri: Invalid value: "oci://a/b:1": must have the digest of the image (oci://registry.example.com/team/model@sha256:...), because a tag can stand for another one later`},
	{`model: {uri: "https://a/b", mountPath: a//b}`,
		`spec.model.mountPath: Invalid value: "a//b": must be an absolute path such as /models, without a colon, an empty segment, "." and ".."`},
	{`model: {uri: "https://a/b", mountPath: /m}, models: [{name: a, uri: "https://a/c", mountPath: /m/n}]`,
		`spec.models[0].mountPath: Invalid value: "/m/n": spec.model is mounted at /m; use a path that is neither that one, nor below or above it`},
	{`models: [{name: a, mountPath: /m}]`,
		`spec.models[0].uri: Required value: such as https://models.example.com/bert.tar.zst; set it, or remove spec.models[0]`},
	{`models: [{name: a, uri: "http://a/b", mountPath: /m}]`,
		`spec.models[0].sha256: Required value: http:// has nothing else that protects what is fetched; set it, or use https://`},
	{`models: [{name: a, uri: "oci://a/b:1", mountPath: /m}]`,
		`spec.models[0].uri: Invalid value: "oci://a/b:1": must have the digest of the image (oci://registry.example.com/team/model@sha256:...), because a tag can stand for another one later`},
	{`models: [{name: a, uri: "https://a/b", mountPath: m}]`,
		`spec.models[0].mountPath: Invalid value: "m": must be an absolute path such as /models, without a colon, an empty segment, "." and ".."`},
	{`models: [{name: a, uri: "https://a/b", mountPath: /m}, {name: b, uri: "https://a/c", mountPath: /m/n}]`,
		`spec.models[1].mountPath: Invalid value: "/m/n": spec.models[0] is mounted at /m; use a path that is neither that one, nor below or above it`},
	{`strategy: {type: A}`,
		`spec.strategy.type: Unsupported value: "A": supported values: "RollingUpdate", "Recreate"`},
	{`strategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}`,
		`spec.strategy.rollingUpdate: Forbidden: may not be set if type is Recreate; remove rollingUpdate, or set type: RollingUpdate`},
	{`strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}`,
		`spec.strategy.rollingUpdate: Invalid value: maxSurge and maxUnavailable may not both be 0, because no rollout could begin; set one of them to 1 or more`},
	{`deploymentName: a, deploymentname: b`,
		`spec.deploymentname: Invalid value: "b": must be the same as deploymentName; remove deploymentname, which is deprecated, and set deploymentName`},
}

// bounds are those of what a schema says without a CEL rule.
var bounds = []violation{
	{`autoscaling: {maxReplicas: 2, prometheus: {serverAddress: "http://p:9090", query: "1", target: "1", idleReplicas: 1}}`,
		`spec.autoscaling.prometheus.idleReplicas: Invalid value: 1: must be 0, because KEDA has no other number`},
	{`autoscaling: {maxReplicas: 2, prometheus: {serverAddress: "http://p:9090", query: "1", target: "1", additionalQueries: [{query: "1", target: "0"}]}}`,
		`spec.autoscaling.prometheus.additionalQueries[0].target: Invalid value: "0": must be greater than 0`},
	{`ports: [{port: 80}], route: {hosts: [a.example.com], gateway: {name: g}, split: [{name: a, weight: 1}, {name: a, weight: 1}]}`,
		`spec.route.split[1].name: Duplicate value: "a"`},
	{`ports: [{port: 80}], route: {hosts: [a.example.com], gateway: {name: g}, split: [{name: a, weight: 0}]}`,
		`spec.route.split[0].weight: Invalid value: 0: must be between 1 and 100, inclusive`},
	{`disruption: {maxUnavailable: 0%}`,
		`spec.disruption.maxUnavailable: Invalid value: "0%": must be a number from 1 to 1073741823, or a percentage from 1% to 100%`},
	{`disruption: {minAvailable: 0}`,
		`spec.disruption.minAvailable: Invalid value: 0: must be a number from 1 to 1073741823, or a percentage from 1% to 100%`},
	{`monitoring: {port: 70000}, ports: [{port: 80}]`,
		`spec.monitoring.port: Invalid value: "70000": must be between 1 and 65535, inclusive`},
	{`ports: [{port: 80, targetPort: 70000}]`,
		`spec.ports[0].targetPort: Invalid value: 70000: must be a number between 1 and 65535, inclusive, or the name of a port`},
	{`rollingUpdate: 0`,
		`spec.rollingUpdate: Invalid value: 0: must be a number from 1 to 1073741823, or a percentage from 1% to 100%`},
	{`strategy: {rollingUpdate: {maxSurge: A}}`,
		`spec.strategy.rollingUpdate.maxSurge: Invalid value: "A": must be a number of pods from 0 to 1073741823, or a percentage from 0% to 100%`},
	{`strategy: {rollingUpdate: {maxUnavailable: A}}`,
		`spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "A": must be a number of pods from 0 to 1073741823, or a percentage from 0% to 100%`},
}

// valid are specs without errors.
var valid = map[string]string{
	"ModelBox": "image: a:1", "App": "image: a:1", "Genericdaemon": "image: a:1", "UnitedDeployment": "deploymentName: a, replicas: 1", "Eru": "enabled: true",
}

// violating returns the valid object of a kind with a part of the spec, nil if the kind does not have
// its fields.
func violating(t *testing.T, kind *kinds.Kind, part string) *unstructured.Unstructured {
	t.Helper()
	spec, change := map[string]any{}, map[string]any{}
	ruletest.Read(t, "{"+valid[kind.GVK.Kind]+"}", &spec)
	ruletest.Read(t, "{"+part+"}", &change)
	fields := kind.CRD().Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	for name, value := range change {
		if _, ok := fields[name]; !ok {
			return nil
		}
		if spec[name] = value; value == nil {
			delete(spec, name)
		}
	}
	obj := kind.Unstructured()
	if obj.SetName("web"); part == "" {
		obj.SetName("1a")
	}
	obj.Object["spec"] = spec
	return obj
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
				continue // It is one of updates: TestImmutable of package create.
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
	if err != nil {
		t.Fatal(err)
	}
	out, err := schema.NewStructural(internal)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// errorsOf returns what lint finds in an object, without warnings and places.
func errorsOf(t *testing.T, obj *unstructured.Unstructured) (out []string) {
	t.Helper()
	manifest, err := yaml.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range check(t, string(manifest)) {
		if f.Severity == lint.Error {
			out = append(out, f.Field+": "+f.Message)
		}
	}
	return out
}

// Each CEL rule of the CRDs has an object that breaks this rule alone, and lint has one error for it:
// that of the rule, or of the operator's rule of the same meaning.
func TestEachRuleOfTheSchemaIsOneError(t *testing.T) {
	t.Parallel()
	rows := make([]int, len(violations)) // The number of rules that each breaks.
	for _, kind := range kinds.All {
		rules := rulesOf(t, kind)
		broken := make([]bool, len(rules))
		for row, violation := range slices.Concat(violations, bounds) {
			obj := violating(t, kind, violation[0])
			if obj == nil {
				continue
			}
			if diff := cmp.Diff([]string{violation[1]}, errorsOf(t, obj)); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", kind.GVK.Kind, violation[0], diff)
			}
			of := 0
			for i, rule := range rules {
				if errs, _ := rule.validator.Validate(t.Context(), nil, rule.schema, obj.Object, nil, celconfig.RuntimeCELCostBudget); len(errs) > 0 {
					broken[i] = true
					of++
				}
			}
			if of > 1 || of > 0 && row >= len(violations) {
				t.Errorf("%s %s breaks %d rules", kind.GVK.Kind, violation[0], of)
			} else if row < len(violations) {
				rows[row] += of
			}
		}
		for i, rule := range rules {
			if !broken[i] {
				t.Errorf("no object breaks the rule of %s %s", kind.GVK.Kind, rule.text)
			}
		}
	}
	for row, violation := range violations {
		if rows[row] == 0 {
			t.Errorf("no rule forbids %s", violation[0])
		}
	}
}
