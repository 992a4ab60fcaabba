// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Kubernetes is the minor version of Kubernetes that this release is built for: that of
// the types and the validation in the k8s.io modules of go.mod.
const Kubernetes = "1.37"

// MaxSize is the maximum size of a pod template in bytes, as JSON. A larger one is not decoded. The
// other bounds of a spec apply to it as well, since it has no schema with those of its parts; but
// one that was stored before they existed is still built.
const MaxSize = rules.MaxBytes

// decoded is a pod template.
type decoded struct {
	corev1.PodTemplateSpec
	// tree is the same as JSON, without nulls.
	tree map[string]any
	// large is true if the template exceeds a bound, so that to validate it could cost too much.
	large bool
}

// Decode decodes spec.podTemplate strictly: field names are case-sensitive, and unknown
// fields, duplicate fields and values of a wrong type are errors at their path. The API
// server does not detect them, because the schema of the field preserves unknown fields.
//
// A null means that nothing is set: it is decoded as if its field were not there. Nil and a null
// are no template and no error. There is no template if a value has a wrong type.
func Decode(raw *runtime.RawExtension) (*corev1.PodTemplateSpec, field.ErrorList) {
	out, errs := decode(raw)
	return out.template(), errs
}

func decode(raw *runtime.RawExtension) (*decoded, field.ErrorList) {
	if raw == nil || len(raw.Raw) == 0 || bytes.Equal(raw.Raw, []byte("null")) {
		return nil, nil
	}
	if len(raw.Raw) > MaxSize {
		return nil, rules.MarkUnbuildable(rules.SpecSize(root, raw.Raw)...)
	}
	out := &decoded{}
	duplicates, err := kjson.UnmarshalStrict(raw.Raw, &out.tree)
	if err != nil {
		return nil, rules.MarkUnbuildable(wrongType(root, nil, err))
	}
	errs := rules.Expensive(root, out.tree)
	if out.large = len(errs) > 0; len(rules.Unbuildable(errs)) > 0 {
		return nil, errs
	}
	errs = append(errs, rules.Sorted(takeNoValues(root, out.tree))...)
	unknown, err := strictly(out.tree, &out.PodTemplateSpec)
	if err != nil {
		return nil, append(errs, rules.MarkUnbuildable(wrongTypes(out.tree)...)...)
	}
	return out, append(errs, rules.MarkUnbuildable(strictErrors(append(duplicates, unknown...))...)...)
}

// strictly decodes a tree, and returns the errors of unknown fields, and that of a wrong type.
func strictly(tree any, into *corev1.PodTemplateSpec) (unknown []error, err error) {
	data, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	return kjson.UnmarshalStrict(data, into)
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
