// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
)

// fieldsOfSpecs returns the fields of all Go types in a spec or a pod template, such as
// "Container.image".
func fieldsOfSpecs() []string {
	fields := fieldSet{}
	for _, spec := range []any{modelv1.ModelBoxSpec{}, appv1.AppSpec{}, mydomainv1beta1.GenericdaemonSpec{}, corev1.PodTemplateSpec{}} {
		fields.add(reflect.TypeOf(spec))
	}
	return sortedKeys(fields)
}

type fieldSet map[string]bool

// add adds the fields of a type, and of their types.
func (s fieldSet) add(t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[runtime.RawExtension]():
		return // Each of them is a scalar in JSON.
	}
	if t.Kind() == reflect.Struct {
		s.addStruct(t.Name(), t)
	}
}

func (s fieldSet) addStruct(name string, t reflect.Type) {
	for field := range t.Fields() {
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case tag == "-":
		case tag == "": // Its fields are inlined.
			s.addStruct(name, field.Type)
		case !s[name+"."+tag]:
			s[name+"."+tag] = true
			s.add(field.Type)
		}
	}
}

// changed returns the field that a removal adds, removes or changes.
func (t removal) changed() string {
	if t.new != nil {
		return t.new.place
	}
	return strings.TrimSuffix(t.place, " "+t.what)
}

// without returns the fields for which there is no removal of that kind.
func without(fields []string, found []removal, has func(removal) bool) []string {
	tried := map[string]bool{}
	for _, t := range found {
		if has(t) {
			tried[t.changed()] = true
		}
	}
	return slices.DeleteFunc(fields, func(field string) bool { return tried[field] })
}
