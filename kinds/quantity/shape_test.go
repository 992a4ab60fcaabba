// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package quantity

import (
	"reflect"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
)

// Every type that a body can be decoded into has a shape, with a type for each exported field.
func TestEveryTypeHasAShape(t *testing.T) {
	t.Parallel()
	seen := map[reflect.Type]bool{}
	var visit func(reflect.Type)
	visit = func(typ reflect.Type) {
		if seen[typ] {
			return
		}
		seen[typ] = true
		s := shapeOf(typ)
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			visit(typ.Elem())
		case reflect.Map:
			visit(typ.Key())
			visit(typ.Elem())
		case reflect.Struct:
			for f := range typ.Fields() {
				if f.IsExported() && f.Tag.Get("json") != "-" {
					visit(f.Type)
				}
			}
			if len(s.fields) == 0 && !s.decodesItself && typ.NumField() > 0 {
				t.Errorf("%s has no fields by their names in JSON", typ)
			}
		}
	}
	for _, root := range []any{
		admissionv1.AdmissionReview{}, corev1.PodTemplateSpec{}, appv1.App{}, extensionv1.UnitedDeployment{},
		modelv1.ModelBox{}, mtsrev1.Eru{}, mydomainv1beta1.Genericdaemon{},
	} {
		visit(reflect.TypeOf(root))
	}
	if len(seen) < 100 {
		t.Errorf("%d types were visited", len(seen))
	}
}
