// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

func TestObjectName(t *testing.T) {
	const rule = "must be a valid Service name: at most 63 characters, lower-case letters, digits and dashes, " +
		"starting with a letter and ending with a letter or digit"
	long := strings.Repeat("a", 63)
	ruletest.Run(t, map[string]ruletest.Row{
		"a word":                    {`{name: web}`, ``},
		"one letter":                {`{name: w}`, ``},
		"63 characters":             {`{name: ` + long + `}`, ``},
		"64 characters":             {`{name: a` + long + `}`, `metadata.name: Invalid value: "a` + long + `": ` + rule},
		"a digit at the end":        {`{name: web-1}`, ``},
		"a digit at the start":      {`{name: 1-web}`, `metadata.name: Invalid value: "1-web": ` + rule},
		"a dash at the end":         {`{name: web-}`, `metadata.name: Invalid value: "web-": ` + rule},
		"a dot":                     {`{name: web.1}`, `metadata.name: Invalid value: "web.1": ` + rule},
		"upper case":                {`{name: Web}`, `metadata.name: Invalid value: "Web": ` + rule},
		"a generated name":          {`{generateName: web-}`, ``},
		"a generated name that ...": {`{generateName: 1-}`, `metadata.generateName: Invalid value: "1-": ` + rule},
		"a long generated name":     {`{generateName: ` + long + long + `}`, ``},
		"a name that was generated": {`{name: web-1, generateName: 1-}`, ``},
		"none":                      {`{}`, `metadata.name: Required value: name or generateName is required`},
	}, rules.ObjectName)
}

func TestLabel(t *testing.T) {
	const rule = "must be a DNS-1123 label: 1 to 63 lower-case letters, digits and dashes, starting and ending with a letter or digit"
	long := strings.Repeat("a", 63)
	ruletest.Run(t, map[string]ruletest.Row{
		"a digit at the start": {`{name: 1-web}`, ``},
		"63 characters":        {`{name: ` + long + `}`, ``},
		"64 characters":        {`{name: a` + long + `}`, `f: Invalid value: "a` + long + `": ` + rule},
		"an underscore":        {`{name: a_b}`, `f: Invalid value: "a_b": ` + rule},
		"a dot":                {`{name: a.b}`, `f: Invalid value: "a.b": ` + rule},
		"a dash at the start":  {`{name: -a}`, `f: Invalid value: "-a": ` + rule},
		"none":                 {`{}`, `f: Required value: a name is required`},
	}, func(m *metav1.ObjectMeta) field.ErrorList { return rules.Label(f, m.Name) })
}
