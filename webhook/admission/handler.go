// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission makes of a kind's pure functions (default, validate, warn) two
// admission.Handlers of controller-runtime, one that defaults and one that validates,
// and serves them.
//
// The handlers are the project's own because of what an admission costs. The typed
// defaulter of controller-runtime decodes an object twice, copies it, marshals it and
// compares the two texts; here the object is decoded once into its type, and only the fields that
// defaults may set are compared.
//
// Both webhooks are free of side effects: the answer depends on the request, and for a ModelBox on
// the sizes of the cluster, so a dry run is answered like any other request, and a webhook may be
// called again (reinvocationPolicy) with the same outcome.
package admission

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Registry serves webhooks by their path, as webhook.Server of controller-runtime does.
type Registry interface {
	Register(path string, hook http.Handler)
}

// Register registers both webhooks of a kind.
func Register(registry Registry, kind *kinds.Erased) {
	registry.Register(MutatePath(kind.GVK), &admission.Webhook{Handler: NewDefaulter(kind)})
	registry.Register(ValidatePath(kind.GVK), &admission.Webhook{Handler: NewValidator(kind)})
}

// MutatePath returns the path of a kind's mutating webhook, such as
// /mutate-app-huolala-cn-v1-app: the form that controller-runtime uses.
func MutatePath(gvk schema.GroupVersionKind) string { return path("/mutate-", gvk) }

// ValidatePath returns the path of a kind's validating webhook, such as
// /validate-app-huolala-cn-v1-app.
func ValidatePath(gvk schema.GroupVersionKind) string { return path("/validate-", gvk) }

func path(prefix string, gvk schema.GroupVersionKind) string {
	return prefix + strings.ReplaceAll(gvk.Group, ".", "-") + "-" + gvk.Version + "-" + strings.ToLower(gvk.Kind)
}

// object is what a default or a rule reads of an object: its spec, and some of its metadata.
type object struct {
	Metadata struct {
		Name              string `json:"name"`
		GenerateName      string `json:"generateName"`
		Namespace         string `json:"namespace"`
		UID               string `json:"uid"`
		DeletionTimestamp string `json:"deletionTimestamp"` // With one, only finalizers matter.
		Generation        int64  `json:"generation"`
		Annotations       struct {
			Manifest string `json:"kubectl.kubernetes.io/last-applied-configuration"`
			Resize   string `json:"modelbox-operator.github.io/resize"`
		} `json:"annotations"`
		ManagedFields json.RawMessage `json:"managedFields"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec"`
	err  error
}

// read reads an object. What is of another type is left out.
func read(data runtime.RawExtension) *object {
	o := &object{}
	err := kjson.UnmarshalCaseSensitivePreserveInts(data.Raw, o)
	if _, mistyped := errors.AsType[*json.UnmarshalTypeError](err); !mistyped {
		o.err = err // It is too deep.
	}
	return o
}

// checkSize returns the errors of a spec that would cost too much. Metadata and status do not
// count, because they are not decoded, or only up to a bound.
func (o *object) checkSize() field.ErrorList {
	switch path := field.NewPath("spec"); {
	case o.err != nil:
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, o.err.Error())}
	case o.Spec != nil:
		return rules.SpecSize(path, o.Spec)
	}
	return nil
}

// document returns an object as JSON that has only a spec, if there is one.
func (o *object) document() []byte {
	if o.Spec == nil {
		return []byte("{}")
	}
	return fmt.Appendf(nil, `{"spec":%s}`, o.Spec)
}

// decode decodes an object into an empty one, with the fields' owners if an update is defaulted. It
// regards case, as the API server does.
func decode[P kinds.Object](o *object, obj P, owners bool) (P, error) {
	if err := kjson.UnmarshalCaseSensitivePreserveInts(o.document(), obj); err != nil {
		return obj, fmt.Errorf("decoding the object: %w", err)
	}
	obj.SetName(o.Metadata.Name)
	obj.SetGenerateName(o.Metadata.GenerateName)
	obj.SetNamespace(o.Metadata.Namespace)
	obj.SetUID(types.UID(o.Metadata.UID))
	if owners {
		o.setOwners(obj)
	}
	return obj, nil
}

const (
	// maxOwners is the maximum length in bytes of managedFields, and of the last applied manifest.
	// Longer ones are not read. The API server allows 256 KiB of annotations.
	maxOwners = 256 << 10
	// maxEntries is the maximum number of items of managedFields. With more, none are read.
	maxEntries = 256
)

// setOwners sets the metadata that says which fields clients have set. The API server bounds
// annotations only after mutation, and other metadata not at all.
func (o *object) setOwners(meta metav1.Object) {
	meta.SetGeneration(o.Metadata.Generation)
	annotations := map[string]string{}
	if manifest := o.Metadata.Annotations.Manifest; manifest != "" && len(manifest) <= maxOwners {
		annotations[corev1.LastAppliedConfigAnnotation] = manifest
	}
	if resize := o.Metadata.Annotations.Resize; resize != "" {
		annotations[modelv1.ResizeAnnotation] = resize
	}
	meta.SetAnnotations(annotations)
	if fields := o.Metadata.ManagedFields; len(fields) > 0 && len(fields) <= maxOwners {
		var items []json.RawMessage
		var entries []metav1.ManagedFieldsEntry
		if json.Unmarshal(fields, &items) == nil && len(items) <= maxEntries && json.Unmarshal(fields, &entries) == nil {
			meta.SetManagedFields(entries)
		}
	}
}

// handler is what both webhooks of a kind have in common.
type handler struct {
	*kinds.Erased
	webhook string // Its type.
}

// NewDefaulter returns the mutating webhook of a kind, which sets defaults.
//
// It also validates the object with its defaults, and refuses it with all errors. The
// API server checks the schema after mutation and stops there if it finds an error, before
// any validating webhook: an object with errors of both sorts would be refused twice, each
// time with one sort. That is why Kind.Validate repeats the schema's bounds. An object that has
// values of a wrong JSON type is left to the schema, which reports all of them.
//
// It never warns: the validating webhook does.
func NewDefaulter(kind *kinds.Erased) admission.Handler {
	return admission.HandlerFunc((&handler{kind, "mutating"}).mutate)
}

// NewValidator returns the validating webhook of a kind, which runs after the
// mutations of all webhooks and the API server's own checks. It refuses what
// NewDefaulter refuses, and warns.
//
// It validates the object with its defaults set, as the controller does: an object
// that was stored while the mutating webhook was not installed is not refused for
// what a default will set.
func NewValidator(kind *kinds.Erased) admission.Handler {
	return admission.HandlerFunc((&handler{kind, "validating"}).validate)
}

func (h *handler) mutate(_ context.Context, req admission.Request) admission.Response {
	sent, resp, done := h.before(&req)
	if done {
		return resp
	}
	obj, err := decode(sent, h.New(), req.Operation == admissionv1.Update)
	if err != nil || sent.Metadata.DeletionTimestamp != "" {
		// A value of a wrong type is refused by the schema, in the next step, with all others.
		return allowed()
	}
	old, kind := h.old(&req, true), h.Current()
	spec := kind.Encoder(obj, old)
	before := spec(obj)
	kind.SetDefaults(obj, old)
	errs := kind.Refuse(obj, old)
	errs = append(errs, rules.Others(h.validateUpdate(obj, old, &req), errs)...)
	if old != nil {
		errs = append(errs, h.Immutable(obj, old)...)
	}
	if len(errs) > 0 {
		return h.invalid(&req, sent, errs)
	}
	return patchResponse(sent.document(), before, spec(obj))
}

// patchResponse returns the response with the defaults of an object, all of which are in its spec.
func patchResponse(object []byte, before, after map[string]any) admission.Response {
	resp := allowed()
	ops, err := kinds.Diff(object, before, after)
	if err != nil || len(ops) == 0 {
		// Of an object that has a null where another object should be, the error of
		// the schema is better than that of an impossible patch, which is only
		// "internal error".
		return resp
	}
	if resp.Patch, err = json.Marshal(ops); err != nil {
		return status(apierrors.NewInternalError(err))
	}
	resp.PatchType = new(admissionv1.PatchTypeJSONPatch)
	return resp
}

func (h *handler) validate(_ context.Context, req admission.Request) admission.Response {
	sent, resp, done := h.before(&req)
	if done {
		return resp
	}
	obj, err := decode(sent, h.New(), false)
	switch {
	case err != nil && isUnchanged(&req, sent):
		return allowed()
	case err != nil:
		return h.invalid(&req, sent, field.ErrorList{field.Invalid(field.NewPath("(root)"), field.OmitValueType{}, err.Error())})
	case sent.Metadata.DeletionTimestamp != "":
		return allowed()
	}
	h.SetDefaults(obj, nil)
	if errs := h.validateUpdate(obj, nil, &req); len(errs) > 0 {
		return h.invalid(&req, sent, errs)
	}
	sent.setOwners(obj)
	resp = allowed()
	resp.Warnings = firstWarnings(h.Warn(obj, h.old(&req, false), time.Now()))
	return resp
}

// before answers a request without decoding its object, if it can: one that needs no
// decision, cannot be decided, or has too large a spec. The size of a spec is checked even
// if the object is being deleted. Otherwise it could become so deep that the API server
// could not list the kind any more, or too large for the memory of its readers. A stored spec
// that has always been too large may stay as it is, but not change.
func (h *handler) before(req *admission.Request) (sent *object, resp admission.Response, done bool) {
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
func (h *handler) checkRequest(req *admission.Request) error {
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
func (h *handler) validateUpdate(obj, old kinds.Object, req *admission.Request) field.ErrorList {
	errs := h.Validate(obj)
	if len(errs) == 0 || len(errs) > maxRatcheted {
		return errs
	}
	if old == nil {
		old = h.old(req, false)
	}
	if old != nil {
		h.SetDefaults(old, nil)
		errs = rules.Added(errs, h.Validate(old))
	}
	return errs
}

// maxRatcheted is how many errors are compared with those of the stored object. No object in
// use has more, and to validate two such objects would take twice the time.
const maxRatcheted = 256

// old returns the object as it is stored, nil if there is none, and if it cannot be decoded, or is
// too large: then an update is judged like a new object, so that one that corrects it is admitted.
// With owners, it has its fields' owners.
func (h *handler) old(req *admission.Request, owners bool) kinds.Object {
	if req.Operation != admissionv1.Update || absent(req.OldObject) {
		return nil
	}
	stored := read(req.OldObject)
	if len(stored.checkSize()) > 0 {
		return nil
	}
	old, err := decode(stored, h.New(), owners)
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
func (h *handler) invalid(req *admission.Request, sent *object, errs field.ErrorList) admission.Response {
	name := rules.Cut(cmp.Or(req.Name, sent.Metadata.Name, sent.Metadata.GenerateName), maxName)
	return status(apierrors.NewInvalid(h.GVK.GroupKind(), name, rules.First(errs)))
}
