// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// The types of webhooks.
const (
	mutating   = "mutating"
	validating = "validating"
)

// handler is what both webhooks of a kind have in common.
type handler[T any, P kinds.Object[T]] struct {
	kinds.Kind[T]
	webhook string
}

// defaulter is the mutating webhook of a kind.
type defaulter[T any, P kinds.Object[T]] struct{ handler[T, P] }

// validator is the validating webhook of a kind.
type validator[T any, P kinds.Object[T]] struct{ handler[T, P] }

// NewDefaulter returns the mutating webhook of a kind, which sets defaults.
//
// It also validates the object with its defaults, and refuses it with all errors,
// values of the wrong JSON type included. The API server checks the schema after
// mutation and stops there if it finds an error, before any validating webhook: an
// object with errors of both sorts would be refused twice, each time with one sort.
// That is why Kind.Validate repeats the schema's bounds.
//
// It never warns: the validating webhook does.
func NewDefaulter[T any, P kinds.Object[T]](kind kinds.Kind[T]) admission.Handler {
	return &defaulter[T, P]{handler[T, P]{kind, mutating}}
}

// NewValidator returns the validating webhook of a kind, which runs after the
// mutations of all webhooks and the API server's own checks. It refuses what
// NewDefaulter refuses, and warns.
//
// It validates the object with its defaults set, as the controller does: an object
// that was stored while the mutating webhook was not installed is not refused for
// what a default will set.
func NewValidator[T any, P kinds.Object[T]](kind kinds.Kind[T]) admission.Handler {
	return &validator[T, P]{handler[T, P]{kind, validating}}
}

// Handle implements admission.Handler.
func (d *defaulter[T, P]) Handle(ctx context.Context, req admission.Request) admission.Response {
	if resp, done := d.before(&req); done {
		return resp
	}
	object := d.decoded(&req)
	obj, misfits, err := read[T](object)
	if err != nil || isDeleting(P(obj)) {
		// What is not an object at all is refused by the schema, in the next step.
		return allowed()
	}
	return d.respond(ctx, &req, object, obj, misfits)
}

// respond sets the defaults of obj, which was decoded from object.
func (d *defaulter[T, P]) respond(ctx context.Context, req *admission.Request, object []byte, obj *T, misfits field.ErrorList) admission.Response {
	old, _ := d.old(req)
	ops := records.Get().(*patch.Ops)
	defer forget(ops)
	d.Default(obj, old, ops)
	if errs := d.validateUpdate(ctx, obj, misfits, req); len(errs) > 0 {
		return d.invalid(name(req, P(obj)), errs)
	}
	if len(misfits) > 0 {
		// The stored object has them too. Defaults that take a value that cannot be
		// read for one that is missing must not be written over it.
		return allowed()
	}
	return d.patched(object, ops)
}

// unread are the parts of an object that no default and no rule reads. Of an object that
// has been stored for a while they can be most of it, so they are not decoded.
var unread = []string{"/status", managedFields, annotations}

const (
	managedFields = "/metadata/managedFields"
	annotations   = "/metadata/annotations"
)

// decoded returns the part of an object that is decoded. On an update, managedFields and
// the last applied manifest show Default which values a client set.
func (d *defaulter[T, P]) decoded(req *admission.Request) []byte {
	if req.Operation == admissionv1.Update {
		return decodable(req.Object.Raw, "/status")
	}
	return decodable(req.Object.Raw, unread...)
}

// patched returns the response with the recorded defaults of an object.
func (d *defaulter[T, P]) patched(object []byte, ops *patch.Ops) admission.Response {
	if err := ops.Err(); err != nil {
		return internalError(err)
	}
	if ops.Len() == 0 || ops.Fit(object) != nil {
		// Of an object that has a null where another object should be, the error of
		// the schema is better than that of an impossible patch, which is only
		// "internal error".
		return allowed()
	}
	resp := allowed()
	resp.Patch, resp.PatchType = bytes.Clone(ops.JSON()), &jsonPatch
	return resp
}

var jsonPatch = admissionv1.PatchTypeJSONPatch

// records are lists of operations that are used again: a list grows several times
// before it holds the defaults of an object.
var records = sync.Pool{New: func() any { return new(patch.Ops) }}

// mostKept is the memory in bytes that a list may keep until its next use.
const mostKept = 64 << 10

func forget(ops *patch.Ops) {
	if ops.Cap() <= mostKept {
		ops.Reset()
		records.Put(ops)
	}
}

// Handle implements admission.Handler.
func (v *validator[T, P]) Handle(ctx context.Context, req admission.Request) admission.Response {
	if resp, done := v.before(&req); done {
		return resp
	}
	obj, misfits, err := read[T](decodable(req.Object.Raw, unread...))
	if err != nil {
		return v.invalid(name(&req, nil), undecodable(err))
	}
	if isDeleting(P(obj)) {
		return allowed()
	}
	v.Default(obj, nil, nil)
	if errs := v.validateUpdate(ctx, obj, misfits, &req); len(errs) > 0 {
		return v.invalid(name(&req, P(obj)), errs)
	}
	resp := allowed()
	if v.Warn != nil {
		resp.Warnings = firstWarnings(v.Warn(obj))
	}
	return resp
}

// before answers a request without decoding its object, if it can: one that needs no
// decision, cannot be decided, or has too large a spec. The size of a spec is checked even
// if the object is being deleted. Otherwise it could become so deep that the API server
// could not list the kind any more, or too large for the memory of its readers.
func (h *handler[T, P]) before(req *admission.Request) (resp admission.Response, done bool) {
	if skip(req) {
		return allowed(), true
	}
	if err := h.checkRequest(req); err != nil {
		return refused(err), true
	}
	size, err := checkSize(req)
	if err != nil {
		return h.invalid(name(req, nil), field.ErrorList{err}), true
	}
	// A stored spec that has always had too many parts, and does not get more, is left to the
	// schema and to the controller.
	return allowed(), rules.Oversize(size)
}

// skip reports whether there is nothing to decide: requests that a webhook
// configuration should not send here, but that must not fail if it does. A delete,
// above all, is never delayed.
func skip(req *admission.Request) bool {
	return req.Operation == admissionv1.Delete || req.Operation == admissionv1.Connect || req.SubResource != ""
}

// isDeleting reports whether an object is being deleted: then only its finalizers
// matter.
func isDeleting(obj metav1.Object) bool { return obj.GetDeletionTimestamp() != nil }

// checkRequest returns why a request cannot be decided here, nil if it can.
func (h *handler[T, P]) checkRequest(req *admission.Request) error {
	switch {
	case schema.GroupVersionKind(req.Kind) != h.GVK:
		return fmt.Errorf("the %s webhook for %s was sent a %s: check the path in the webhook configuration",
			h.webhook, h.GVK, schema.GroupVersionKind(req.Kind))
	case req.Operation != admissionv1.Create && req.Operation != admissionv1.Update:
		return fmt.Errorf("unknown operation %q: CREATE, UPDATE, DELETE or CONNECT is expected", req.Operation)
	case absent(req.Object):
		return fmt.Errorf("the request to %s has no object", req.Operation)
	}
	return nil
}

// old returns the object as it is stored, nil if there is none, and the errors of
// the values in it that cannot be decoded: such a value must neither hide the other
// errors of the object nor prevent an update that corrects it.
func (h *handler[T, P]) old(req *admission.Request) (*T, field.ErrorList) {
	if req.Operation != admissionv1.Update || absent(req.OldObject) || rules.Oversize(sizeOfSpec(req.OldObject.Raw)) {
		return nil, nil
	}
	old, misfits, err := read[T](decodable(req.OldObject.Raw, unread...))
	if err != nil {
		return nil, nil
	}
	return old, misfits
}

func absent(object runtime.RawExtension) bool {
	return len(object.Raw) == 0 || string(object.Raw) == "null"
}

// name returns the name of an object for an error. An object that is created with
// generateName has no name yet.
func name(req *admission.Request, obj metav1.Object) string {
	if req.Name != "" || obj == nil {
		return rules.Cut(req.Name, maxName)
	}
	if name := obj.GetName(); name != "" {
		return rules.Cut(name, maxName)
	}
	return rules.Cut(obj.GetGenerateName(), maxName)
}

const (
	// maxName is the maximum length in bytes of a name in a response, that of an object.
	maxName = 253
	// maxText is the maximum length in bytes of an error that is no list of fields.
	maxText = 1024
	// maxWarnings is the maximum number of warnings in a response, which are headers of
	// the API server's response to its client.
	maxWarnings = 20
	// maxWarning is the maximum length of a warning in bytes, from which on the API server
	// may cut it.
	maxWarning = 120
)

// firstWarnings returns the first warnings, each cut to maxWarning, and if there are more
// than maxWarnings, one that counts the others.
func firstWarnings(warnings []string) []string {
	if more := len(warnings) - maxWarnings; more > 0 {
		warnings = append(warnings[:maxWarnings-1:maxWarnings-1], fmt.Sprintf("and %d more warnings", more+1))
	}
	for i := range warnings {
		warnings[i] = rules.Cut(warnings[i], maxWarning)
	}
	return warnings
}

func allowed() admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true}}
}

// status returns a refusal with the status of an error. admission.Errored and
// admission.Denied have no reason, or no causes.
func status(err *apierrors.StatusError) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &err.ErrStatus}}
}

// invalid returns the refusal that the API server would give for the same errors.
func (h *handler[T, P]) invalid(name string, errs field.ErrorList) admission.Response {
	return status(apierrors.NewInvalid(h.GVK.GroupKind(), name, rules.First(errs)))
}

func refused(err error) admission.Response {
	return status(apierrors.NewBadRequest(rules.Cut(err.Error(), maxText)))
}

func internalError(err error) admission.Response { return status(apierrors.NewInternalError(err)) }

// undecodable returns the error for an object of which nothing can be decoded.
func undecodable(err error) field.ErrorList {
	if misfit, ok := errors.AsType[*field.Error](err); ok {
		return field.ErrorList{misfit}
	}
	return field.ErrorList{field.Invalid(field.NewPath("(root)"), field.OmitValueType{}, err.Error())}
}
