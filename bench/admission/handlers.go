// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"net/http"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/webhook/admission"
)

// handlers are the handlers of a side. The defaults, the rules and the warnings
// behind them are the same.
func handlers(side string) (mutating, validating http.Handler, err error) {
	switch side {
	case "ours":
		kind := admission.Kind[modelv1.ModelBox]{
			GVK:      modelv1.SchemeGroupVersion.WithKind("ModelBox"),
			Default:  modelbox.Default,
			Validate: modelbox.Validate,
			Warn:     modelbox.Warn,
		}
		return &ctrladmission.Webhook{Handler: admission.NewDefaulter(kind)},
			&ctrladmission.Webhook{Handler: admission.NewValidator(kind)}, nil
	case "typed":
		scheme := apiruntime.NewScheme()
		if err := modelv1.AddToScheme(scheme); err != nil {
			return nil, nil, err
		}
		return ctrladmission.WithDefaulter[*modelv1.ModelBox](scheme, typed{}), ctrladmission.WithValidator[*modelv1.ModelBox](scheme, typed{}), nil
	}
	return nil, nil, fmt.Errorf("there is no side %q", side)
}

// typed is a defaulter and validator as tutorials write one.
type typed struct{}

// Default fills in what is left open.
func (typed) Default(_ context.Context, box *modelv1.ModelBox) error {
	modelbox.Default(box, nil, nil)
	return nil
}

// ValidateCreate says what is wrong with a new object.
func (typed) ValidateCreate(_ context.Context, box *modelv1.ModelBox) (ctrladmission.Warnings, error) {
	return modelbox.Warn(box), modelbox.Validate(box).ToAggregate()
}

// ValidateUpdate says what is wrong with a changed object.
func (typed) ValidateUpdate(_ context.Context, _, box *modelv1.ModelBox) (ctrladmission.Warnings, error) {
	return modelbox.Warn(box), modelbox.Validate(box).ToAggregate()
}

// ValidateDelete lets every object go.
func (typed) ValidateDelete(context.Context, *modelv1.ModelBox) (ctrladmission.Warnings, error) {
	return nil, nil
}
