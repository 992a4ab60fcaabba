// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox_test

import (
	"os"
	"slices"
	"testing"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

const template = `
image: nginx:1.7.9
ports: [{port: 80}, {port: 81}]
podTemplate:
  metadata: {labels: {team: a}}
  spec:
    volumes: [{name: data, emptyDir: {}}]
    containers:
    - {name: web, volumeMounts: [{name: data, mountPath: /data}]}
    - {name: agent, image: agent:1, env: [{name: A, value: b}], resources: {limits: {cpu: 1}}}`

func given(b *testing.B) *modelv1.ModelBox {
	b.Helper()
	text, err := os.ReadFile("testdata/modelbox.yaml")
	must(err)
	out := &modelv1.ModelBox{}
	ruletest.Read(b, string(text), out)
	return out
}

// BenchmarkDefault defaults into a shallow copy, whose ports are one allocation.
func BenchmarkDefault(b *testing.B) {
	sent := given(b)
	stored := defaulted(sent, nil)
	larger := stored.DeepCopy()
	larger.Spec.ResourceType = modelv1.ResourceTypeLarge
	larger.ManagedFields = owned(unrelatedFields)
	for name, tc := range map[string]struct{ box, old *modelv1.ModelBox }{
		"create":                 {sent, nil},
		"in memory":              {stored, nil},
		"update of nothing":      {stored, stored},
		"update of resourceType": {larger, stored},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			box := *tc.box
			for b.Loop() {
				box.Spec = tc.box.Spec
				box.Spec.Ports = slices.Clone(box.Spec.Ports)
				modelbox.Default(&box, tc.old, &patch.Ops{})
			}
		})
	}
}

func BenchmarkValidate(b *testing.B) {
	bad := given(b)
	bad.Spec.Image, bad.Spec.Replicas = "A", new(int32(-1))
	withTemplate := &modelv1.ModelBox{}
	withTemplate.Name = "web"
	ruletest.Read(b, template, &withTemplate.Spec)
	for name, box := range map[string]*modelv1.ModelBox{
		"accepted": given(b),
		"refused":  bad,
		"template": withTemplate,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			modelbox.Default(box, nil, nil)
			if errs := modelbox.Validate(box); (len(errs) > 0) != (name == "refused") {
				b.Fatal(errs)
			}
			for b.Loop() {
				modelbox.Validate(box)
			}
		})
	}
}
