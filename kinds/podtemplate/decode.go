// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"bytes"
	"errors"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/modelbox-operator/modelbox-operator/kinds/lenient"
	"github.com/modelbox-operator/modelbox-operator/kinds/quantity"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// MaxSize is the maximum size of a pod template in bytes, as JSON without spaces. A larger one
// is not decoded. The other bounds of a spec apply to it as well, since it has no schema with
// those of its parts; but one that was stored before they existed is still built.
const MaxSize = rules.MaxBytes

var templateType = reflect.TypeFor[corev1.PodTemplateSpec]()

// Decode decodes spec.podTemplate strictly: field names are case-sensitive, and unknown
// fields, duplicate fields and values of a wrong type are errors at their path. The API
// server does not detect them, because the schema of the field preserves unknown fields.
//
// Nil and JSON's null are no template and no error. With errors, Decode returns the
// template without the invalid fields, so that one error does not hide others, which
// ratcheting validation would take for new ones when the first is corrected. It returns
// nil if the template is too large or not a JSON object.
func Decode(raw *runtime.RawExtension) (*corev1.PodTemplateSpec, field.ErrorList) {
	if raw == nil || len(raw.Raw) == 0 || bytes.Equal(raw.Raw, []byte("null")) {
		return nil, nil
	}
	if len(raw.Raw) > MaxSize {
		if err := rules.SizeOf(root, raw.Raw); err != nil {
			return nil, rules.MarkUnbuildable(err)
		}
	}
	template, errs := decode(raw.Raw)
	return template, rules.MarkUnbuildable(errs...)
}

func decode(data []byte) (*corev1.PodTemplateSpec, field.ErrorList) {
	if len(quantity.Check(data, templateType, root)) == 0 {
		template := &corev1.PodTemplateSpec{}
		if unknown, err := kjson.UnmarshalStrict(data, template); err == nil {
			return template, strictErrors(unknown)
		}
	}
	rest, errs, err := lenient.Strip(data, templateType, root, false)
	if err != nil {
		return nil, field.ErrorList{unreadable(err)}
	}
	template := &corev1.PodTemplateSpec{}
	unknown, err := kjson.UnmarshalStrict(rest, template)
	if err != nil {
		return nil, append(errs, unreadable(err))
	}
	return template, append(errs, strictErrors(unknown)...)
}

// unreadable returns the error of a template that cannot be decoded at all.
func unreadable(err error) *field.Error {
	if fieldErr, ok := errors.AsType[*field.Error](err); ok {
		return fieldErr
	}
	return field.Invalid(root, field.OmitValueType{}, err.Error())
}

// strictErrors converts the strict errors of the decoder.
func strictErrors(strict []error) field.ErrorList {
	var errs field.ErrorList
	for _, err := range strict {
		detail := "Kubernetes " + Kubernetes + ", which this release is built for, has no such field; check its name and its position"
		if strings.HasPrefix(err.Error(), "duplicate") {
			detail = "the field is set twice; remove one of them"
		}
		path := root
		if at, ok := errors.AsType[kjson.FieldError](err); ok {
			path = path.Child(at.FieldPath())
		}
		errs = append(errs, field.Forbidden(path, detail))
	}
	return errs
}
