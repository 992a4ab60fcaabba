// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch/raw"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// specOf returns the spec of an object as JSON, nil if it has none.
func specOf(object runtime.RawExtension) []byte {
	if absent(object) {
		return nil
	}
	spec, _ := raw.Find(object.Raw, "/spec")
	return spec
}

// checkSize returns the errors of a spec that would cost too much. Metadata and status do not count,
// because they are not read, or only up to a bound.
func checkSize(spec []byte) field.ErrorList {
	if spec == nil {
		return nil
	}
	return rules.SpecSize(field.NewPath("spec"), spec)
}

// isUnchanged reports whether an update leaves the spec as it is stored.
func isUnchanged(req *admission.Request) bool {
	return req.Operation == admissionv1.Update && !absent(req.OldObject) && bytes.Equal(specOf(req.Object), specOf(req.OldObject))
}

// decode decodes what a default or a rule reads of an object: its spec and some of its metadata,
// with the fields' owners if an update is defaulted. It regards case, as the API server does.
func decode[T any](object runtime.RawExtension, owners bool) (*T, error) {
	spec := specOf(object)
	if spec == nil {
		spec = []byte("null")
	}
	obj := new(T)
	if err := kjson.UnmarshalCaseSensitivePreserveInts(fmt.Appendf(nil, `{"metadata":{%s},"spec":%s}`, metadataOf(object.Raw, owners), spec), obj); err != nil {
		return nil, fmt.Errorf("decoding the object: %w", err)
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

// metadataOf returns the members of an object's metadata that are read. The API server bounds
// annotations only after mutation, and other metadata not at all.
func metadataOf(object []byte, owners bool) []byte {
	metadata, ok := raw.Find(object, "/metadata")
	if !ok {
		return nil
	}
	var members [][]byte
	for _, name := range [...]string{"name", "generateName", "namespace", "deletionTimestamp"} {
		if value, ok := raw.Find(metadata, "/"+name); ok && value[0] == '"' {
			members = append(members, fmt.Appendf(nil, `%q:%s`, name, value))
		}
	}
	if !owners {
		return bytes.Join(members, []byte(","))
	}
	const manifest = corev1.LastAppliedConfigAnnotation
	if value, ok := raw.Find(metadata, patch.Key("/annotations", manifest)); ok && value[0] == '"' && len(value) <= maxOwners {
		members = append(members, fmt.Appendf(nil, `"annotations":{%q:%s}`, manifest, value))
	}
	_, tooMany := raw.Find(metadata, patch.At("/managedFields", maxEntries, ""))
	if value, ok := raw.Find(metadata, "/managedFields"); ok && !tooMany && len(value) <= maxOwners {
		members = append(members, fmt.Appendf(nil, `"managedFields":%s`, value))
	}
	return bytes.Join(members, []byte(","))
}
