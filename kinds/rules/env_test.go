// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

func TestEnv(t *testing.T) {
	const (
		name    = `must consist of printable ASCII characters other than '='`
		key     = `must be 1 to 253 letters, digits, dashes, underscores and dots, and not start with two dots`
		object  = `must be a DNS-1123 subdomain: at most 253 lower-case letters, digits, dashes and dots`
		sources = `must specify one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef and fileKeyRef`
		fields  = `supported values: "metadata.labels['key']", "metadata.annotations['key']", "metadata.name", "metadata.namespace", ` +
			`"metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"`
		resources = `supported values: "limits.cpu", "limits.memory", "limits.ephemeral-storage", ` +
			`"requests.cpu", "requests.memory", "requests.ephemeral-storage"`
	)
	ruletest.Run(t, map[string]ruletest.Row{
		"a value":            {`[{name: A, value: b}]`, ``},
		"no value":           {`[{name: A}]`, ``},
		"any printable name": {`[{name: "1 a.b-c:/d"}]`, ``},
		"no name":            {`[{value: b}]`, `f[0].name: Required value: a name is required`},
		"a name with =":      {`[{name: "a=b"}]`, `f[0].name: Invalid value: "a=b": ` + name},
		"a name with é":      {`[{name: é}]`, `f[0].name: Invalid value: "é": ` + name},
		"a name with a tab":  {`[{name: "a\tb"}]`, `f[0].name: Invalid value: "a\tb": ` + name},
		"a name twice":       {`[{name: A}, {name: B}, {name: A}]`, `f[2].name: Duplicate value: "A"`},
		"a name in two cases": {
			`[{name: A}, {name: a}]`, ``,
		},
		"no names twice": {`[{value: a}, {value: b}]`, `
f[0].name: Required value: a name is required
f[1].name: Required value: a name is required`},
		"a key of a ConfigMap": {`[{name: A, valueFrom: {configMapKeyRef: {name: a.b, key: C_d.e-1}}}]`, ``},
		"no key": {
			`[{name: A, valueFrom: {configMapKeyRef: {name: a, key: ""}}}]`,
			`f[0].valueFrom.configMapKeyRef.key: Required value: a key is required`,
		},
		"a wrong key": {
			`[{name: A, valueFrom: {configMapKeyRef: {name: a, key: a/b}}}]`,
			`f[0].valueFrom.configMapKeyRef.key: Invalid value: "a/b": ` + key,
		},
		"a key of dots": {
			`[{name: A, valueFrom: {secretKeyRef: {name: a, key: ..}}}]`,
			`f[0].valueFrom.secretKeyRef.key: Invalid value: "..": ` + key,
		},
		"no ConfigMap": {
			`[{name: A, valueFrom: {configMapKeyRef: {name: "", key: a}}}]`,
			`f[0].valueFrom.configMapKeyRef.name: Required value: a name is required`,
		},
		"a wrong Secret": {
			`[{name: A, valueFrom: {secretKeyRef: {name: A, key: a}}}]`,
			`f[0].valueFrom.secretKeyRef.name: Invalid value: "A": ` + object,
		},
		"no source": {`[{name: A, valueFrom: {}}]`, `f[0].valueFrom: Required value: ` + sources},
		"two sources": {
			`[{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}, secretKeyRef: {name: a, key: b}}}]`,
			`f[0].valueFrom: Forbidden: may not have more than one source; use several variables`,
		},
		"a value and a source": {
			`[{name: A, value: b, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]`,
			`f[0].valueFrom: Forbidden: may not be set together with value; remove one of them`,
		},
		"a field of the pod": {`[{name: A, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: status.podIPs}}}]`, ``},
		"a label":            {`[{name: A, valueFrom: {fieldRef: {fieldPath: "metadata.labels['a.b/c']"}}}]`, ``},
		"an annotation":      {`[{name: A, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['A.b/C']"}}}]`, ``},
		"a label in upper case": {
			`[{name: A, valueFrom: {fieldRef: {fieldPath: "metadata.labels['A.b/C']"}}}]`,
			`f[0].valueFrom.fieldRef.fieldPath: Unsupported value: "metadata.labels['A.b/C']": ` + fields,
		},
		"all labels": {
			`[{name: A, valueFrom: {fieldRef: {fieldPath: metadata.labels}}}]`,
			`f[0].valueFrom.fieldRef.fieldPath: Unsupported value: "metadata.labels": ` + fields,
		},
		"a key of something": {
			`[{name: A, valueFrom: {fieldRef: {fieldPath: "metadata.name['a']"}}}]`,
			`f[0].valueFrom.fieldRef.fieldPath: Unsupported value: "metadata.name['a']": ` + fields,
		},
		"a key without an end": {
			`[{name: A, valueFrom: {fieldRef: {fieldPath: "metadata.labels['a"}}}]`,
			`f[0].valueFrom.fieldRef.fieldPath: Unsupported value: "metadata.labels['a": ` + fields,
		},
		"no field": {
			`[{name: A, valueFrom: {fieldRef: {fieldPath: ""}}}]`,
			`f[0].valueFrom.fieldRef.fieldPath: Unsupported value: "": ` + fields,
		},
		"another version": {
			`[{name: A, valueFrom: {fieldRef: {apiVersion: v2, fieldPath: metadata.name}}}]`,
			`f[0].valueFrom.fieldRef.apiVersion: Unsupported value: "v2": supported values: "v1"`,
		},
		"a resource": {`[{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}]`, ``},
		"huge pages": {`[{name: A, valueFrom: {resourceFieldRef: {resource: limits.hugepages-2Mi}}}]`, ``},
		"an unknown resource": {
			`[{name: A, valueFrom: {resourceFieldRef: {resource: cpu}}}]`,
			`f[0].valueFrom.resourceFieldRef.resource: Unsupported value: "cpu": ` + resources,
		},
		"divisors": {`
- {name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}
- {name: B, valueFrom: {resourceFieldRef: {resource: requests.memory, divisor: 1Gi}}}
- {name: C, valueFrom: {resourceFieldRef: {resource: limits.hugepages-2Mi, divisor: "0"}}}`, ``},
		"wrong divisors": {`
- {name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 2m}}}
- {name: B, valueFrom: {resourceFieldRef: {resource: limits.ephemeral-storage, divisor: 1m}}}`, `
f[0].valueFrom.resourceFieldRef.divisor: Unsupported value: "2m": supported values: "1m", "1"
f[1].valueFrom.resourceFieldRef.divisor: Unsupported value: "1m": supported values: "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"`},
		"a key of a file": {`[{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: a/b, key: K}}}]`, ``},
		"a key of a file, wrong": {`[{name: A, valueFrom: {fileKeyRef: {volumeName: "", path: a/../b, key: ""}}}]`, `
f[0].valueFrom.fileKeyRef.volumeName: Required value: a name is required
f[0].valueFrom.fileKeyRef.key: Invalid value: "": ` + name + `
f[0].valueFrom.fileKeyRef.path: Invalid value: "a/../b": must be a path in the volume that does not contain '..'`},
		"a key of a file without path": {
			`[{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: "", key: K}}}]`,
			`f[0].valueFrom.fileKeyRef.path: Invalid value: "": must be a path in the volume that does not contain '..'`,
		},
	}, func(vars *[]corev1.EnvVar) field.ErrorList { return rules.Env(f, *vars) })
}

// Long lists are searched in another way.
func TestRepeatsInLongLists(t *testing.T) {
	t.Parallel()
	for _, n := range []int{16, 17, 1000} {
		vars := make([]corev1.EnvVar, n)
		for i := range vars {
			vars[i].Name = fmt.Sprint("A", i)
		}
		if errs := rules.Env(f, vars); len(errs) > 0 {
			t.Errorf("%d variables: %v", n, errs)
		}
		vars[n-1].Name = "A3"
		vars[n-2].Name = "A3"
		want := fmt.Sprintf("f[%d].name: Duplicate value: \"A3\"\nf[%d].name: Duplicate value: \"A3\"", n-2, n-1)
		if got := ruletest.Lines(rules.Env(f, vars)); got != want {
			t.Errorf("%d variables: %s, want %s", n, got, want)
		}
	}
}

func TestEnvFrom(t *testing.T) {
	const one = `must specify exactly one of configMapRef and secretRef`
	ruletest.Run(t, map[string]ruletest.Row{
		"a ConfigMap": {`[{configMapRef: {name: a}}]`, ``},
		"a Secret":    {`[{secretRef: {name: a}, prefix: "1_"}]`, ``},
		"neither":     {`[{prefix: A}]`, `f[0]: Invalid value: ` + one},
		"both":        {`[{configMapRef: {name: a}, secretRef: {name: b}}]`, `f[0]: Invalid value: ` + one},
		"a wrong prefix": {
			`[{secretRef: {name: a}, prefix: "="}]`,
			`f[0].prefix: Invalid value: "=": must consist of printable ASCII characters other than '='`,
		},
		"a dash at the end": {`[{configMapRef: {name: a-}}, {secretRef: {name: a-}}]`, ``}, // As Kubernetes has it.
		"no name":           {`[{configMapRef: {}}]`, `f[0].configMapRef.name: Required value: a name is required`},
		"a wrong name": {
			`[{secretRef: {name: ` + strings.Repeat("a", 254) + `}}]`,
			`f[0].secretRef.name: Invalid value: "` + strings.Repeat("a", 254) + `": must be a DNS-1123 subdomain: at most 253 lower-case letters, digits, dashes and dots`,
		},
	}, func(list *[]corev1.EnvFromSource) field.ErrorList { return rules.EnvFrom(f, *list) })
}

func TestFileKeys(t *testing.T) {
	t.Parallel()
	vars := []corev1.EnvVar{{Name: "A"}, {Name: "B", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "v"}}}}
	if got, want := ruletest.Lines(rules.FileKeys(f, vars, nil)), `f[1].valueFrom.fileKeyRef.volumeName: Not found: "v"`; got != want {
		t.Errorf("without a template: %s, want %s", got, want)
	}
	if errs := rules.FileKeys(f, vars, &corev1.PodTemplateSpec{}); len(errs) > 0 {
		t.Errorf("with a template: %v", errs)
	}
}
