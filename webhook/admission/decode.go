// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission makes of a kind's pure functions (default, validate, warn) two
// admission.Handlers of controller-runtime, one that defaults and one that validates,
// and serves them.
//
// The handlers are the project's own because of what an admission costs. The typed
// defaulter of controller-runtime decodes an object twice, copies it, marshals it and
// compares the two texts; here the object is decoded once into its type, and every
// default is recorded as it is set (package patch).
//
// Both webhooks are free of side effects: the answer depends on the request, and for a ModelBox on the sizes of the cluster, so
// a dry run is answered like any other request, and a webhook may be called again
// (reinvocationPolicy) with the same outcome.
package admission

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
func Register[T any, P kinds.Object[T]](registry Registry, kind kinds.Kind[T]) {
	registry.Register(MutatePath(kind.GVK), &admission.Webhook{Handler: NewDefaulter[T, P](kind)})
	registry.Register(ValidatePath(kind.GVK), &admission.Webhook{Handler: NewValidator[T, P](kind)})
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
		DeletionTimestamp string `json:"deletionTimestamp"` // With one, only finalizers matter.
		Generation        int64  `json:"generation"`
		Annotations       struct {
			Manifest string `json:"kubectl.kubernetes.io/last-applied-configuration"`
			Resize   string `json:"model.github.com/resize"`
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

// checkSize returns the errors of a spec that would cost too much. Metadata and status do not count,
// because they are not decoded, or only up to a bound.
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

// decode decodes an object, with the fields' owners if an update is defaulted. It regards case, as
// the API server does.
func decode[T any, P kinds.Object[T]](o *object, owners bool) (*T, error) {
	obj := new(T)
	if err := kjson.UnmarshalCaseSensitivePreserveInts(o.document(), obj); err != nil {
		return nil, fmt.Errorf("decoding the object: %w", err)
	}
	meta := P(obj)
	meta.SetName(o.Metadata.Name)
	meta.SetGenerateName(o.Metadata.GenerateName)
	meta.SetNamespace(o.Metadata.Namespace)
	if owners {
		o.setOwners(meta)
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
