// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// An empty struct differs from an unset one only where it has an effect.
func TestEmptyStructs(t *testing.T) {
	for spec, differs := range map[string]bool{
		`securityContext: {}`:                                                false,
		`affinity: {podAffinity: {}}`:                                        false,
		`containers: [{name: a, lifecycle: {}}]`:                             false,
		`containers: [{name: a, livenessProbe: {}}]`:                         false,
		`containers: [{name: a, securityContext: {capabilities: {}}}]`:       false,
		`volumes: [{name: a, hostPath: {path: /}}, {name: b, emptyDir: {}}]`: true,
		`securityContext: {runAsUser: 0}`:                                    true,
		`affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, labelSelector: {}}]}}`: true,
	} {
		desired, live := &appsv1.Deployment{}, &appsv1.Deployment{}
		if err := yaml.UnmarshalStrict([]byte(spec), &desired.Spec.Template.Spec); err != nil {
			t.Fatal(err)
		}
		desired.DeepCopyInto(live)
		withoutEmpty(reflect.ValueOf(&live.Spec.Template.Spec).Elem())
		live.Spec.Template.Spec.SecurityContext, live.Spec.Template.Spec.Affinity = nil, nil
		if len(live.Spec.Template.Spec.Volumes) > 1 {
			live.Spec.Template.Spec.Volumes[1].EmptyDir = nil
		}
		if got := len(differences(desired, live)) > 0; got != differs {
			t.Errorf("%s differs: %t, want %t", spec, got, differs)
		}
	}
}

// withoutEmpty removes the structs that isEmptyStruct accepts.
func withoutEmpty(value reflect.Value) {
	fields := fieldsOf(value.Type())
	for i := range fields {
		f, inner := &fields[i], value.Field(fields[i].index)
		switch {
		case f.unset(inner):
		case inner.Kind() == reflect.Pointer && isEmptyStruct(f, inner.Elem()):
			inner.SetZero()
		default:
			withoutEmptyIn(f, inner)
		}
	}
}

func withoutEmptyIn(f *field, value reflect.Value) {
	if value.Kind() == reflect.Pointer {
		value = value.Elem()
	}
	if isScalar(value.Type()) {
		return
	}
	switch {
	case value.Kind() == reflect.Struct && f.merge == granular:
		withoutEmpty(value)
	case f.merge == keyed:
		for i := range value.Len() {
			withoutEmpty(value.Index(i))
		}
	}
}
