// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch/raw"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Everything here reads JSON that has not been decoded yet, in one pass: decoding a value
// takes up to a hundred times its memory, and an error of it a thousand times.

// smallObject is the length in bytes of an object that is not measured. Its lists can be a
// little longer than those of a spec may be, its pod template's not.
const smallObject = 4 << 10

var specPath = field.NewPath("spec")

// sizeOfSpec returns the size of an object's spec, nothing for a small object.
func sizeOfSpec(object []byte) raw.Size {
	if len(object) <= smallObject {
		return raw.Size{}
	}
	spec, ok := raw.Find(object, "/spec")
	if !ok {
		return raw.Size{}
	}
	return raw.Measure(spec)
}

// checkSize returns the size of the spec in a request, and the error if it is above a bound
// and, on an update, larger than the stored one.
func checkSize(req *admission.Request) (raw.Size, *field.Error) {
	size := sizeOfSpec(req.Object.Raw)
	err := rules.WithinSize(specPath, size, raw.Size{})
	if err != nil && !absent(req.OldObject) {
		err = rules.WithinSize(specPath, size, sizeOfSpec(req.OldObject.Raw))
	}
	if err != nil {
		err.Detail = fmt.Sprintf("there are %v; %s", err.BadValue, err.Detail)
	}
	return size, err
}

// decodable returns the part of an object that is decoded: all but what pointers name, and
// of an object that has as a whole more items than a spec may have, only what a default or a
// rule reads.
func decodable(object []byte, pointers ...string) []byte {
	if len(object) <= smallObject || !rules.Oversize(raw.Measure(object)) {
		return raw.Without(object, pointers...)
	}
	spec, ok := raw.Find(object, "/spec")
	if !ok {
		spec = []byte("null")
	}
	return fmt.Appendf(nil, `{"metadata":{%s},"spec":%s}`, metadataOf(object, pointers), spec)
}

// metadataOf returns the members of an object's metadata that are read, without those that
// pointers name. The API server bounds annotations only after mutation, and other metadata
// not at all.
func metadataOf(object []byte, pointers []string) []byte {
	metadata, _ := raw.Find(object, "/metadata")
	if len(metadata) == 0 {
		return nil
	}
	var members [][]byte
	for _, name := range [...]string{"name", "generateName", "namespace", "deletionTimestamp"} {
		if value, ok := raw.Find(metadata, "/"+name); ok && value[0] == '"' {
			members = append(members, fmt.Appendf(nil, `%q:%s`, name, value))
		}
	}
	const manifest = corev1.LastAppliedConfigAnnotation
	if value, ok := raw.Find(metadata, patch.Key("/annotations", manifest)); ok && value[0] == '"' && !slices.Contains(pointers, annotations) {
		members = append(members, fmt.Appendf(nil, `"annotations":{%q:%s}`, manifest, value))
	}
	if value, ok := raw.Find(metadata, "/managedFields"); ok && !slices.Contains(pointers, managedFields) && !rules.Oversize(raw.Measure(value)) {
		members = append(members, fmt.Appendf(nil, `"managedFields":%s`, value))
	}
	return bytes.Join(members, []byte(","))
}
