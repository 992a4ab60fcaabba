// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/webhook/patch"
)

// verdict is what an answer says: allowed, with a patch and warnings if there
// are any, or refused with a status.
type verdict struct {
	patch    []byte
	warnings []string
	refusal  *metav1.Status
}

var allowed = verdict{}

// Mutating is the webhook that defaults.
//
// It also validates what it has defaulted, and refuses it with everything that is
// wrong, values of the wrong JSON type included. The API server checks the schema
// after mutation and stops there if it finds an error, before any validating webhook:
// an object with errors of both sorts would be refused twice, each time with one sort.
// That is why Kind.Validate repeats the schema's bounds.
//
// It never warns: the validating webhook does, and one is enough.
func Mutating[T any, P Object[T]](kind Kind[T]) http.Handler {
	return newEndpoint(kind.GVK, "mutating", (&judge[T, P]{kind}).mutate)
}

// Validating is the webhook that has the last word, after every mutation by
// others and the API server's own checks. It refuses what Mutating refuses, and
// warns.
//
// It validates the object with its defaults filled in, as the controller does
// when it acts on it: an object that was admitted while the other webhook
// was not installed is not refused for what a default will settle.
func Validating[T any, P Object[T]](kind Kind[T]) http.Handler {
	return newEndpoint(kind.GVK, "validating", (&judge[T, P]{kind}).validate)
}

type judge[T any, P Object[T]] struct{ Kind[T] }

func (j *judge[T, P]) mutate(_ context.Context, r *request, ops *patch.Ops) (verdict, error) {
	blank(r.Object, "/status")
	if !r.Operation.is("UPDATE") {
		blank(r.Object, "/metadata/managedFields")
	}
	obj, misfits, err := read[T](r.Object)
	if err != nil {
		// It is no object at all, which the schema says in the next step.
		return allowed, nil //nolint:nilerr // The comment above says why.
	}
	if P(obj).GetDeletionTimestamp() != nil {
		return allowed, nil
	}
	old, _ := j.old(r)
	j.Default(obj, old, ops)
	if errs := j.wrong(obj, misfits, r); len(errs) > 0 {
		return verdict{refusal: j.invalid(name(r, P(obj)), errs)}, nil
	}
	if len(misfits) > 0 {
		// The stored object has them too. Defaults that take a value that cannot be
		// read for one that is missing must not be written over it.
		return allowed, nil
	}
	if ops.Len() == 0 || ops.Err() != nil {
		return allowed, ops.Err()
	}
	if unfit := ops.Fit(r.Object); unfit != nil {
		// Something is null that should be an object. As above, the schema has
		// the better words, and an impossible patch would be answered with
		// nothing but "internal error".
		return allowed, nil //nolint:nilerr // To allow it is the answer to what does not fit.
	}
	return verdict{patch: ops.JSON()}, nil
}

func (j *judge[T, P]) validate(ctx context.Context, r *request, _ *patch.Ops) (verdict, error) {
	blank(r.Object, "/status", "/metadata/managedFields")
	obj, misfits, err := read[T](r.Object)
	if err != nil {
		return verdict{refusal: j.invalid(name(r, nil), undecodable(err))}, nil
	}
	if P(obj).GetDeletionTimestamp() != nil {
		return allowed, nil
	}
	j.Default(obj, nil, nil)
	if errs := j.wrong(obj, misfits, r); len(errs) > 0 {
		return verdict{refusal: j.invalid(name(r, P(obj)), errs)}, nil
	}
	if j.Warn == nil {
		return allowed, nil
	}
	return verdict{warnings: j.Warn(ctx, obj)}, nil
}

// old is the object as it is stored, nil if there is none, and the errors of what is
// left out of it: what in it cannot be decoded must neither hide what else is wrong
// with it nor prevent an update that corrects it.
func (j *judge[T, P]) old(r *request) (*T, field.ErrorList) {
	if !r.Operation.is("UPDATE") || r.OldObject.absent() {
		return nil, nil
	}
	blank(r.OldObject, "/status", "/metadata/managedFields")
	old, misfits, err := read[T](r.OldObject)
	if err != nil {
		return nil, nil
	}
	return old, misfits
}

// name is what to call an object. One that is created with generateName has no
// name yet.
func name(r *request, obj metav1.Object) string {
	if name := r.Name.String(); name != "" || obj == nil {
		return name
	}
	if name := obj.GetName(); name != "" {
		return name
	}
	return obj.GetGenerateName()
}
