// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"bytes"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// podTemplate is where each kind keeps its pod template.
var podTemplate = field.NewPath("spec", "podTemplate")

// PodTemplate decodes spec.podTemplate strictly: names are case-sensitive, and each
// field that a pod template doesn't have, that is there twice or that is of the
// wrong type is an error at its path. The schema says nothing of the field, so
// nobody else would tell.
//
// Nil, and JSON's null, is no template and no error. With errors the template is
// there as well, as far as it was understood, unless something in it is of the
// wrong type: then it is nil.
func PodTemplate(raw *runtime.RawExtension) (*corev1.PodTemplateSpec, field.ErrorList) {
	if raw == nil || len(raw.Raw) == 0 || bytes.Equal(raw.Raw, []byte("null")) {
		return nil, nil
	}
	template := &corev1.PodTemplateSpec{}
	unknown, err := kjson.UnmarshalStrict(raw.Raw, template)
	if err != nil {
		return nil, unbuildable(undecodable(raw.Raw, err)...)
	}
	return template, unbuildable(misspelt(unknown)...)
}

// misspelt makes errors of what the decoder calls strict errors.
func misspelt(strict []error) field.ErrorList {
	var errs field.ErrorList
	for _, err := range strict {
		detail := "a pod template has no such field: check its spelling and its place"
		if strings.HasPrefix(err.Error(), "duplicate") {
			detail = "the field is there twice: remove one of them"
		}
		path := podTemplate
		if at, ok := errors.AsType[kjson.FieldError](err); ok {
			path = path.Child(at.FieldPath())
		}
		errs = append(errs, field.Forbidden(path, detail))
	}
	return errs
}
