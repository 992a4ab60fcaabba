// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch/raw"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// object is what a default or a rule reads of an object: its spec, and some of its metadata.
type object struct {
	Metadata struct {
		Name              string `json:"name"`
		GenerateName      string `json:"generateName"`
		Namespace         string `json:"namespace"`
		DeletionTimestamp string `json:"deletionTimestamp"` // With one, only finalizers matter.
		Annotations       struct {
			Manifest string `json:"kubectl.kubernetes.io/last-applied-configuration"`
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
	if manifest := o.Metadata.Annotations.Manifest; manifest != "" && len(manifest) <= maxOwners {
		meta.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: manifest})
	}
	if fields := o.Metadata.ManagedFields; len(fields) > 0 && len(fields) <= maxOwners {
		var entries []metav1.ManagedFieldsEntry
		if _, tooMany := raw.Find(fields, patch.At("", maxEntries, "")); !tooMany && json.Unmarshal(fields, &entries) == nil {
			meta.SetManagedFields(entries)
		}
	}
}
