// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// handler is what both webhooks of a kind have in common.
type handler[T any, P kinds.Object[T]] struct {
	kinds.Kind[T]
	webhook string // Its type.
}

// defaulter is the mutating webhook of a kind.
type defaulter[T any, P kinds.Object[T]] struct{ handler[T, P] }

// validator is the validating webhook of a kind.
type validator[T any, P kinds.Object[T]] struct{ handler[T, P] }

// NewDefaulter returns the mutating webhook of a kind, which sets defaults.
//
// It also validates the object with its defaults, and refuses it with all errors. The
// API server checks the schema after mutation and stops there if it finds an error, before
// any validating webhook: an object with errors of both sorts would be refused twice, each
// time with one sort. That is why Kind.Validate repeats the schema's bounds. An object that has
// values of a wrong JSON type is left to the schema, which reports all of them.
//
// It never warns: the validating webhook does.
func NewDefaulter[T any, P kinds.Object[T]](kind kinds.Kind[T]) admission.Handler {
	return &defaulter[T, P]{handler[T, P]{kind, "mutating"}}
}

// NewValidator returns the validating webhook of a kind, which runs after the
// mutations of all webhooks and the API server's own checks. It refuses what
// NewDefaulter refuses, and warns.
//
// It validates the object with its defaults set, as the controller does: an object
// that was stored while the mutating webhook was not installed is not refused for
// what a default will set.
func NewValidator[T any, P kinds.Object[T]](kind kinds.Kind[T]) admission.Handler {
	return &validator[T, P]{handler[T, P]{kind, "validating"}}
}

// Handle implements admission.Handler.
func (d *defaulter[T, P]) Handle(_ context.Context, req admission.Request) admission.Response {
	sent, resp, done := d.before(&req)
	if done {
		return resp
	}
	obj, err := decode[T, P](sent, req.Operation == admissionv1.Update)
	if err != nil || sent.Metadata.DeletionTimestamp != "" {
		// A value of a wrong type is refused by the schema, in the next step, with all others.
		return allowed()
	}
	old, ops := d.old(&req), &patch.Ops{}
	errs := d.admit(obj, old, ops)
	errs = append(errs, rules.Others(d.validateUpdate(obj, old, &req), errs)...)
	if old != nil && d.Immutable != nil {
		errs = append(errs, d.Immutable(obj, old)...)
	}
	if len(errs) > 0 {
		return d.invalid(&req, sent, errs)
	}
	return patchResponse(sent.document(), ops)
}

func (d *defaulter[T, P]) admit(obj, old *T, ops *patch.Ops) field.ErrorList {
	if d.Admit != nil {
		return d.Admit(obj, old, ops)
	}
	d.Default(obj, old, ops)
	return nil
}

// patchResponse returns the response with the recorded defaults of an object, all of which are in its
// spec.
func patchResponse(object []byte, ops *patch.Ops) admission.Response {
	if err := ops.Err(); err != nil {
		return status(apierrors.NewInternalError(err))
	}
	resp := allowed()
	if ops.Len() == 0 || ops.Fit(object) != nil {
		// Of an object that has a null where another object should be, the error of
		// the schema is better than that of an impossible patch, which is only
		// "internal error".
		return resp
	}
	resp.Patch, resp.PatchType = ops.JSON(), new(admissionv1.PatchTypeJSONPatch)
	return resp
}

// Handle implements admission.Handler.
func (v *validator[T, P]) Handle(_ context.Context, req admission.Request) admission.Response {
	sent, resp, done := v.before(&req)
	if done {
		return resp
	}
	obj, err := decode[T, P](sent, false)
	switch {
	case err != nil && isUnchanged(&req, sent):
		return allowed()
	case err != nil:
		return v.invalid(&req, sent, field.ErrorList{field.Invalid(field.NewPath("(root)"), field.OmitValueType{}, err.Error())})
	case sent.Metadata.DeletionTimestamp != "":
		return allowed()
	}
	v.Default(obj, nil, nil)
	if errs := v.validateUpdate(obj, nil, &req); len(errs) > 0 {
		return v.invalid(&req, sent, errs)
	}
	resp = allowed()
	resp.Warnings = firstWarnings(v.warnings(obj, &req))
	return resp
}

// warnings returns the warnings of a valid object.
func (h *handler[T, P]) warnings(obj *T, req *admission.Request) (warnings []string) {
	if h.WarnUpdate != nil {
		if old := h.old(req); old != nil {
			warnings = h.WarnUpdate(obj, old)
		}
	}
	if h.Warn != nil {
		warnings = append(warnings, h.Warn(obj)...)
	}
	return warnings
}

// before answers a request without decoding its object, if it can: one that needs no
// decision, cannot be decided, or has too large a spec. The size of a spec is checked even
// if the object is being deleted. Otherwise it could become so deep that the API server
// could not list the kind any more, or too large for the memory of its readers. A stored spec
// that has always been too large may stay as it is, but not change.
func (h *handler[T, P]) before(req *admission.Request) (sent *object, resp admission.Response, done bool) {
	if skip(req) {
		return nil, allowed(), true
	}
	if err := h.checkRequest(req); err != nil {
		return nil, status(apierrors.NewBadRequest(rules.Cut(err.Error(), maxText))), true
	}
	sent = read(req.Object)
	switch errs := sent.checkSize(); {
	case len(errs) == 0:
		return sent, resp, false
	case isUnchanged(req, sent):
		return sent, allowed(), true
	default:
		return sent, h.invalid(req, sent, errs), true
	}
}

// isUnchanged reports whether an update leaves the spec as it is stored.
func isUnchanged(req *admission.Request, sent *object) bool {
	return sent.err == nil && req.Operation == admissionv1.Update && !absent(req.OldObject) && bytes.Equal(sent.Spec, read(req.OldObject).Spec)
}

// skip reports whether there is nothing to decide: requests that a webhook
// configuration should not send here, but that must not fail if it does. A delete,
// above all, is never delayed.
func skip(req *admission.Request) bool {
	return req.Operation == admissionv1.Delete || req.Operation == admissionv1.Connect || req.SubResource != ""
}

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

// validateUpdate returns the errors of obj. It is ratcheting validation: an update is refused
// only for errors that it adds. An error of the stored object, perhaps from before a rule
// existed, must not prevent a change of its labels or its image (KEP-4008 does the same for
// schemas). old may be nil, and is decoded only if there is an error to compare.
func (h *handler[T, P]) validateUpdate(obj, old *T, req *admission.Request) field.ErrorList {
	errs := h.Validate(obj)
	if len(errs) == 0 || len(errs) > maxRatcheted {
		return errs
	}
	if old == nil {
		old = h.old(req)
	}
	if old != nil {
		h.Default(old, nil, nil)
		errs = rules.Added(errs, h.Validate(old))
	}
	return errs
}

// maxRatcheted is how many errors are compared with those of the stored object. No object in
// use has more, and to validate two such objects would take twice the time.
const maxRatcheted = 256

// old returns the object as it is stored, nil if there is none, and if it cannot be decoded, or is too
// large: then an update is judged like a new object, so that one that corrects it is admitted.
func (h *handler[T, P]) old(req *admission.Request) *T {
	if req.Operation != admissionv1.Update || absent(req.OldObject) {
		return nil
	}
	stored := read(req.OldObject)
	if len(stored.checkSize()) > 0 {
		return nil
	}
	old, err := decode[T, P](stored, false)
	if err != nil {
		return nil
	}
	return old
}

func absent(object runtime.RawExtension) bool {
	return len(object.Raw) == 0 || string(object.Raw) == "null"
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

// invalid returns the refusal that the API server would give for the same errors. An object that is
// created with generateName has no name yet.
func (h *handler[T, P]) invalid(req *admission.Request, sent *object, errs field.ErrorList) admission.Response {
	name := rules.Cut(cmp.Or(req.Name, sent.Metadata.Name, sent.Metadata.GenerateName), maxName)
	return status(apierrors.NewInvalid(h.GVK.GroupKind(), name, rules.First(errs)))
}
