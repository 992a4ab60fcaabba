// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package sizes

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// validate returns the errors of a size: those that a ModelBox with its fields has.
func (s *Size) validate(path *field.Path, name string, spec *modelv1.ModelBoxSpec) field.ErrorList {
	errs := rules.Label(path, name)
	if resourceType := modelv1.ResourceType(name); len(errs) == 0 && !modelbox.IsSize(resourceType) {
		errs = append(errs, field.Forbidden(path, "is built in; use another name"))
	}
	if len(s.Description) > maxDescription || strings.ContainsAny(s.Description, "\r\n") {
		errs = append(errs, field.Invalid(path.Child("description"), field.OmitValueType{}, fmt.Sprintf("must be one line of at most %d bytes", maxDescription)))
	}
	if len(s.Resources.Claims) > 0 {
		errs = append(errs, field.Forbidden(path.Child("resources", "claims"), "a size has no claims; remove them"))
	}
	if s.Scheduling != nil && s.Scheduling.PodLabels != nil {
		errs = append(errs, field.Forbidden(path.Child("scheduling", "podLabels"), "is a field of the size; use podLabels beside scheduling"))
	}
	errs = append(errs, s.Server.validate(path.Child("server"), spec)...)
	if s.Server == nil {
		spec = spec.DeepCopy()
		spec.Image = "image:1" // That of the object.
	}
	return append(errs, rules.Others(asBox(path, spec), errs)...)
}

// replaceable refuses names in the arguments and environment variables of a server that nothing
// replaces.
func replaceable(path *field.Path, spec *modelv1.ModelBoxSpec) field.ErrorList {
	var errs field.ErrorList
	check := func(path *field.Path, text string) {
		for _, name := range placeholder.FindAllString(text, -1) {
			if name != modelbox.ModelPath && name != modelbox.ModelFile {
				errs = append(errs, field.NotSupported(path, name, []string{modelbox.ModelPath, modelbox.ModelFile, accelerators, port}))
			}
		}
	}
	for i, arg := range spec.Args {
		check(path.Child("args").Index(i), arg)
	}
	for _, env := range spec.Envs {
		check(path.Child("envs").Key(env.Name), env.Value)
	}
	return errs
}

// asBox returns the errors of a ModelBox with the fields of a size.
func asBox(path *field.Path, spec *modelv1.ModelBoxSpec) field.ErrorList {
	box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Name: "size"}, Spec: *spec.DeepCopy()}
	box.Spec.ResourceType, box.Spec.Resources.Claims = modelv1.ResourceTypeCustom, nil
	modelbox.Default(box)
	errs := modelbox.Validate(box)
	for _, err := range errs {
		in := strings.TrimPrefix(err.Field, "spec.")
		for _, name := range fieldsOf {
			if rest, ok := strings.CutPrefix(in, name[0]); ok {
				in = name[1] + rest
				break
			}
		}
		err.Field = path.String() + "." + in
	}
	return errs
}
