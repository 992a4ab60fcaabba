// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fieldownership reports which fields of an object are set by a client, and which by
// admission. There are two sources.
//
// The API server computes managedFields before it calls mutating admission, so a field with
// a field manager is set by a client, and a field without one is a default of admission. See
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
//
// A client-side apply does not send values that are stored already, so its manager never
// owns a field whose default is added to the manifest later. But it stores the whole manifest
// in an annotation.
package fieldownership

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch/raw"
)

// Ownership reports which fields of an object are set by a client. The zero Ownership, of an
// object in memory or in a test, has no client at all.
type Ownership struct {
	entries []metav1.ManagedFieldsEntry
	text    string

	// The sources as JSON, once they have been read. A set of fields that is not JSON is
	// nil, and a manifest that is not JSON is null.
	sets     [][]byte
	manifest []byte
}

// Of returns the ownership of the fields of an object. The sources are not parsed before
// they are needed.
func Of(meta *metav1.ObjectMeta) Ownership {
	return Ownership{entries: meta.ManagedFields, text: meta.Annotations[corev1.LastAppliedConfigAnnotation]}
}

// HasManagedFields reports whether the object has managedFields. Without them, the owners
// of its fields are not known.
func (o *Ownership) HasManagedFields() bool { return len(o.entries) > 0 }

// IsSet reports whether a client set the field at a JSON pointer, such as
// /spec/serviceType, to its current value. equal reports whether a scalar of the last
// applied manifest is that value. It is nil for objects, which are set if a client set
// one of their fields, or set them to {}.
//
// If managedFields have an object, but none of its fields, its fields are not set: all objects
// that can hold a derived field are granular in the schemas (x-kubernetes-map-type).
func (o *Ownership) IsSet(pointer string, equal func(text string) bool) bool {
	return o.isManaged(strings.ReplaceAll(pointer, "/", "/f:")) || o.isLastApplied(pointer, equal)
}

// IsPortNameSet is IsSet for the name of a port. Ports are a list with the keys port and
// protocol.
func (o *Ownership) IsPortNameSet(port *modelv1.Port) bool {
	protocol := port.ProtocolOrDefault()
	return o.isManaged(fmt.Sprintf(`/f:spec/f:ports/k:{"port":%d,"protocol":%q}/f:name`, port.Port, protocol)) || o.isLastAppliedName(port, protocol)
}

// isManaged reports whether an entry of managedFields has a field.
func (o *Ownership) isManaged(pointer string) bool {
	for _, set := range o.managedSets() {
		if set == nil {
			return true // The field may be set by a client, so it must not change.
		}
		if _, ok := raw.Find(set, pointer); ok {
			return true
		}
	}
	return false
}

// managedSets returns the sets of fields of all entries. Each is checked once, and not for
// each field that is looked up: together they can have megabytes.
func (o *Ownership) managedSets() [][]byte {
	if o.sets != nil {
		return o.sets
	}
	o.sets = make([][]byte, 0, len(o.entries))
	for i := range o.entries {
		if fields := o.entries[i].FieldsV1; fields != nil {
			set := fields.GetRawBytes()
			if !json.Valid(set) {
				set = nil
			}
			o.sets = append(o.sets, set)
		}
	}
	return o.sets
}

// isLastApplied reports whether the manifest of the last client-side apply has the field,
// either with its current value or as an empty object. The fields of other objects have
// pointers of their own. The manifest may have another value, because it does not change
// when another client changes or removes the field.
func (o *Ownership) isLastApplied(pointer string, equal func(text string) bool) bool {
	value, ok := raw.Find(o.lastApplied(), pointer)
	switch {
	case !ok:
		return false
	case equal == nil:
		return value[0] == '{' && len(bytes.TrimSpace(value[1:len(value)-1])) == 0
	}
	return equal(scalar(value))
}

func (o *Ownership) lastApplied() []byte {
	if o.manifest == nil {
		o.manifest = []byte(o.text)
		if !json.Valid(o.manifest) {
			o.manifest = []byte("null") // Has no fields.
		}
	}
	return o.manifest
}

// scalar returns the text of a JSON string, and any other value as it is.
func scalar(value []byte) string {
	if text := ""; json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// isLastAppliedName reports whether the manifest of the last client-side apply has the
// name of a port.
func (o *Ownership) isLastAppliedName(port *modelv1.Port, protocol corev1.Protocol) bool {
	list, ok := raw.Find(o.lastApplied(), "/spec/ports")
	_, tooMany := raw.Find(o.lastApplied(), patch.At("/spec/ports", modelv1.MaxPorts, ""))
	var ports []modelv1.Port
	if !ok || tooMany || json.Unmarshal(list, &ports) != nil {
		return false
	}
	return slices.ContainsFunc(ports, func(p modelv1.Port) bool {
		return p.Port == port.Port && p.ProtocolOrDefault() == protocol && p.Name == port.Name
	})
}
