// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/all"
)

// What the test of an install asks for has one error, and a value that the error quotes.
func TestEachKindHasAnObjectThatIsRefused(t *testing.T) {
	for _, kind := range all.Kinds {
		obj := refused[kind.GVK.Kind].DeepCopyObject().(client.Object)
		obj.SetName("test")
		kind.SetDefaults(obj, nil)
		if errs := kind.Validate(obj); len(errs) != 1 || errs[0].BadValue != invalid {
			t.Errorf("%s: %v", kind.GVK.Kind, errs)
		}
	}
}

// The end-to-end suite runs the same as "helm test", with a real webhook.
func TestAdmissionIsTested(t *testing.T) {
	boxes := modelv1.SchemeGroupVersion.WithKind("ModelBox").GroupKind()
	refusal := apierrors.NewInvalid(boxes, "test", field.ErrorList{field.Invalid(field.NewPath("spec", "image"), invalid, "must be an image reference")})
	schema := apierrors.NewInvalid(boxes, "test", field.ErrorList{field.Required(field.NewPath("spec", "other"), "")})
	down := apierrors.NewInternalError(errors.New("failed calling webhook: connection refused"))
	for name, test := range map[string]struct {
		answers []error // The last one is repeated.
		want    string  // a part of the error
	}{
		"the webhook refuses":            {[]error{refusal}, ""},
		"it is trusted after a moment":   {[]error{down, down, refusal}, ""},
		"it is not called":               {[]error{nil}, "does not call the webhook"},
		"it is not called later either":  {[]error{down, nil}, "does not call the webhook"},
		"it cannot be reached":           {[]error{down}, "connection refused"},
		"another rule refuses, for ever": {[]error{schema}, "spec.other"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				asked := 0
				c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(newScheme()).Build(), interceptor.Funcs{
					Create: func(_ context.Context, _ client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
						if options := (&client.CreateOptions{}).ApplyOptions(opts); len(options.DryRun) == 0 || obj.GetNamespace() != "ops" {
							t.Errorf("it creates an object in namespace %s, and not in a dry run in its own", obj.GetNamespace())
						}
						asked++
						return test.answers[min(asked, len(test.answers))-1]
					},
				})
				err := testAdmission(ctx, c, "ops", "ModelBox")
				if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
					t.Errorf("the error is %v, want one with %q", err, test.want)
				}
				if asked < len(test.answers) {
					t.Errorf("it asked %d times, want %d", asked, len(test.answers))
				}
			})
		})
	}
}
