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

	"github.com/modelbox-operator/modelbox-operator/webhook/lenient"
	"github.com/modelbox-operator/modelbox-operator/webhook/quantity"
	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
)

// MaxSize is how many bytes a pod template may have, as JSON without spaces. It
// has no schema that bounds its parts, so it is bounded as a whole.
const MaxSize = 128 << 10

var templateType = reflect.TypeFor[corev1.PodTemplateSpec]()

// Decode decodes spec.podTemplate strictly: names are case-sensitive, and each
// field that a pod template doesn't have, that is there twice or that is of the
// wrong type is an error at its path. The schema says nothing of the field, so
// nobody else would tell.
//
// Nil, and JSON's null, is no template and no error. With errors the template is there
// as well, without what could not be understood: one error must not hide others, which
// would look new when the first is corrected. It is nil only if it is too large, or no
// JSON object.
func Decode(raw *runtime.RawExtension) (*corev1.PodTemplateSpec, field.ErrorList) {
	if raw == nil || len(raw.Raw) == 0 || bytes.Equal(raw.Raw, []byte("null")) {
		return nil, nil
	}
	if len(raw.Raw) > MaxSize {
		return nil, rules.MarkUnbuildable(rules.TooLarge(root, len(raw.Raw), MaxSize,
			"move large values to a ConfigMap or a Secret that the pod mounts"))
	}
	template, errs := decode(raw.Raw)
	return template, rules.MarkUnbuildable(errs...)
}

func decode(data []byte) (*corev1.PodTemplateSpec, field.ErrorList) {
	if len(quantity.Check(data, templateType, root)) == 0 {
		template := &corev1.PodTemplateSpec{}
		if unknown, err := kjson.UnmarshalStrict(data, template); err == nil {
			return template, misspelt(unknown)
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
	return template, append(errs, misspelt(unknown)...)
}

// unreadable is the error for a template of which no part is left.
func unreadable(err error) *field.Error {
	if misfit, ok := errors.AsType[*field.Error](err); ok {
		return misfit
	}
	return field.Invalid(root, field.OmitValueType{}, err.Error())
}

// misspelt makes errors of what the decoder calls strict errors.
func misspelt(strict []error) field.ErrorList {
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
