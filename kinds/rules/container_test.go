// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

func TestWords(t *testing.T) {
	words := func(n int) string { return "[" + strings.Repeat("a,", n) + "]" }
	ruletest.Run(t, map[string]ruletest.Row{
		"none":         {`[]`, ``},
		"empty words":  {`["", " "]`, ``},
		"the most":     {words(rules.MaxWords), ``},
		"one too many": {words(rules.MaxWords + 1), `f: Too many: 1025: must have at most 1024 items`},
	}, func(words *[]string) field.ErrorList { return rules.Words(f, *words) })
}

func TestPullPolicy(t *testing.T) {
	ruletest.Run(t, map[string]ruletest.Row{
		"none": {`""`, ``}, "Always": {`Always`, ``}, "IfNotPresent": {`IfNotPresent`, ``}, "Never": {`Never`, ``},
		"another": {`always`, `f: Unsupported value: "always": supported values: "Always", "IfNotPresent", "Never"`},
	}, func(policy *corev1.PullPolicy) field.ErrorList { return rules.PullPolicy(f, *policy) })
}

func TestPullSecrets(t *testing.T) {
	const name = `must be a DNS-1123 subdomain: at most 253 lower-case letters, digits, dashes and dots`
	ruletest.Run(t, map[string]ruletest.Row{
		"none":         {`[]`, ``},
		"names":        {`[{name: a}, {name: a.b-1}]`, ``},
		"no name":      {`[{}]`, `f[0].name: Required value: a name is required`},
		"not a name":   {`[{name: a}, {name: A_b}, {name: ../a}]`, `f[1].name: Invalid value: "A_b": ` + name + "\n" + `f[2].name: Invalid value: "../a": ` + name},
		"twice":        {`[{name: a}, {name: b}, {name: a}]`, `f[2].name: Duplicate value: "a"`},
		"the most":     {secrets(16), ``},
		"one too many": {secrets(17), `f: Too many: 17: must have at most 16 items`},
	}, func(list *[]corev1.LocalObjectReference) field.ErrorList { return rules.PullSecrets(f, *list) })
}

func secrets(n int) string {
	out := "["
	for i := range n {
		out += "{name: a" + strings.Repeat("a", i) + "},"
	}
	return out + "]"
}

func TestSeconds(t *testing.T) {
	ruletest.Run(t, map[string]ruletest.Row{
		"none": {`null`, ``}, "the least": {`4`, ``}, "the most": {`86400`, ``},
		"less": {`3`, `f: Invalid value: 3: must be from 4 to 86400`},
		"more": {`86401`, `f: Invalid value: 86401: must be from 4 to 86400`},
	}, func(seconds **int64) field.ErrorList { return rules.Seconds(f, *seconds, 4) })
}

func TestSharedMemorySize(t *testing.T) {
	type spec struct {
		SharedMemory *resource.Quantity           `json:"sharedMemory"`
		Resources    *corev1.ResourceRequirements `json:"resources"`
	}
	ruletest.Run(t, map[string]ruletest.Row{
		"none":               {`{resources: {limits: {memory: 1}}}`, ``},
		"without resources":  {`{sharedMemory: 100Ti}`, ``},
		"without a limit":    {`{sharedMemory: 100Ti, resources: {requests: {memory: 1}, limits: {cpu: 1}}}`, ``},
		"a limit of 0":       {`{sharedMemory: 100Ti, resources: {limits: {memory: 0}}}`, ``},
		"less than it":       {`{sharedMemory: 1.5G, resources: {limits: {memory: 2Gi}}}`, ``},
		"all of it":          {`{sharedMemory: 2048Mi, resources: {limits: {memory: 2Gi}}}`, ``},
		"zero":               {`{sharedMemory: 0}`, `f: Invalid value: "0": must be greater than 0`},
		"zero with a suffix": {`{sharedMemory: 0Gi}`, `f: Invalid value: "0": must be greater than 0`},
		"less than zero":     {`{sharedMemory: -1Gi}`, `f: Invalid value: "-1Gi": must be greater than 0`},
		"more than the limit": {
			`{sharedMemory: 4Gi, resources: {limits: {memory: 2Gi}}}`,
			`f: Invalid value: "4Gi": must be less than or equal to the memory limit of 2Gi of the main container, against which it counts; decrease it, or increase the limit`,
		},
	}, func(s *spec) field.ErrorList { return rules.SharedMemorySize(f, s.SharedMemory, s.Resources) })
}
