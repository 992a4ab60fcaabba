// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

func TestResources(t *testing.T) {
	const (
		name = `must be cpu, memory, ephemeral-storage, hugepages-<size>, or a name with a domain such as example.com/gpu`
		huge = `huge pages require cpu or memory`
		page = `must be a multiple of the page size`
		same = `must be set to the request, because this resource cannot be overcommitted`
	)
	ruletest.Run(t, map[string]ruletest.Row{
		"nothing": {`{}`, ``},
		"requests below limits": {
			`{limits: {cpu: 2, memory: 2Gi, ephemeral-storage: 1Gi}, requests: {cpu: 1500m, memory: 1Gi}}`,
			``,
		},
		"requests equal to limits": {`{limits: {cpu: 1}, requests: {cpu: 1000m}}`, ``},
		"a request above its limit": {
			`{limits: {cpu: 1}, requests: {cpu: 1001m}}`,
			`f.requests[cpu]: Invalid value: "1001m": must be less than or equal to the limit of 1`,
		},
		"a request without a limit": {`{requests: {cpu: 1}}`, ``},
		"zero":                      {`{limits: {cpu: 0}}`, ``},
		"negative": {
			`{limits: {cpu: -1m}, requests: {memory: -1}}`,
			"f.limits[cpu]: Invalid value: \"-1m\": must be greater than or equal to 0\nf.requests[memory]: Invalid value: \"-1\": must be greater than or equal to 0",
		},
		"an unknown name":       {`{limits: {gpu: 1}}`, `f.limits[gpu]: Invalid value: "gpu": ` + name},
		"a name that is none":   {`{limits: {"a b": 1}}`, `f.limits[a b]: Invalid value: "a b": ` + name},
		"a resource of others":  {`{limits: {example.com/gpu: 1}, requests: {example.com/gpu: 1}}`, ``},
		"a limit of it alone":   {`{limits: {example.com/gpu: 1}}`, ``},
		"a request of it alone": {`{requests: {example.com/gpu: 1}}`, `f.limits[example.com/gpu]: Required value: ` + same},
		"a request of less of it": {
			`{limits: {example.com/gpu: 2}, requests: {example.com/gpu: 1}}`,
			`f.requests[example.com/gpu]: Invalid value: "1": must be equal to the limit of 2`,
		},
		"a part of it": {
			`{limits: {example.com/gpu: 500m}}`,
			`f.limits[example.com/gpu]: Invalid value: "500m": must be an integer`,
		},
		"a resource of Kubernetes' ns": {`{limits: {kubernetes.io/x: 1}}`, ``},
		"a quota's name": {
			`{limits: {requests.example.com/gpu: 1}}`,
			`f.limits[requests.example.com/gpu]: Invalid value: "requests.example.com/gpu": ` + name,
		},
		"huge pages": {`{limits: {hugepages-2Mi: 4Mi, memory: 1Gi}, requests: {hugepages-2Mi: 4Mi}}`, ``},
		"huge pages, a part of one": {
			`{limits: {hugepages-2Mi: 3Mi, cpu: 1}}`,
			`f.limits[hugepages-2Mi]: Invalid value: "3Mi": ` + page,
		},
		"huge pages of no size": {`{limits: {hugepages-x: 3Mi, cpu: 1}}`, `f.limits[hugepages-x]: Invalid value: "3Mi": ` + page},
		"huge pages of size 0":  {`{limits: {hugepages-0: 3Mi, cpu: 1}}`, `f.limits[hugepages-0]: Invalid value: "3Mi": ` + page},
		"huge pages alone":      {`{limits: {hugepages-2Mi: 4Mi}}`, `f: Forbidden: ` + huge},
		"huge pages, another request": {
			`{limits: {hugepages-2Mi: 4Mi}, requests: {cpu: 1, hugepages-2Mi: 2Mi}}`,
			`f.requests[hugepages-2Mi]: Invalid value: "2Mi": must be equal to the limit of 4Mi`,
		},
		"several, in order": {`{limits: {z: 1, w: 1, x: 1, cpu: 1}, requests: {cpu: 2}}`, `
f.limits[w]: Invalid value: "w": ` + name + `
f.limits[x]: Invalid value: "x": ` + name + `
f.limits[z]: Invalid value: "z": ` + name + `
f.requests[cpu]: Invalid value: "2": must be less than or equal to the limit of 1`},
	}, func(r *corev1.ResourceRequirements) field.ErrorList { return rules.Resources(f, r) })
}

func TestClaims(t *testing.T) {
	const must = `must be the name of one of spec.podTemplate.spec.resourceClaims`
	type pod struct {
		Resources *corev1.ResourceRequirements `json:"resources"`
		Template  *corev1.PodTemplateSpec      `json:"template"`
	}
	ruletest.Run(t, map[string]ruletest.Row{
		"no resources": {`{}`, ``},
		"no claims":    {`{resources: {}}`, ``},
		"a template":   {`{resources: {claims: [{name: b}]}, template: {spec: {resourceClaims: [{name: a}]}}}`, ``}, // Kubernetes says so.
		"no template":  {`{resources: {claims: [{name: a}]}}`, `f.claims[0].name: Invalid value: "a": ` + must},
		"a claim twice": {
			`{resources: {claims: [{name: a}, {name: a}]}, template: {spec: {resourceClaims: [{name: a}]}}}`,
			`f.claims[1].name: Duplicate value: "a"`,
		},
	}, func(p *pod) field.ErrorList { return rules.Claims(f, p.Resources, p.Template) })

	if errs := rules.Resources(f, nil); errs != nil {
		t.Errorf("no resources: %v", errs)
	}
}

func TestDevice(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ resources, want string }{
		"CPU and memory":        {`{limits: {cpu: 1, memory: 1Gi, ephemeral-storage: 1Gi, hugepages-2Mi: 2Mi}}`, ""},
		"an extended resource":  {`{limits: {cpu: 1, nvidia.com/gpu: 1}}`, "nvidia.com/gpu"},
		"none of it":            {`{limits: {nvidia.com/gpu: 0}}`, ""},
		"several":               {`{limits: {b.com/x: 1, a.com/y: 2, c.com/z: 1}}`, "a.com/y"},
		"a claim":               {`{claims: [{name: a}]}`, "device"},
		"a resource and claims": {`{limits: {b.com/x: 1}, claims: [{name: a}]}`, "b.com/x"},
	} {
		r := &corev1.ResourceRequirements{}
		ruletest.Read(t, tc.resources, r)
		if got := rules.Device(r); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if got := rules.Device(nil); got != "" {
		t.Errorf("nil: %q", got)
	}
}
