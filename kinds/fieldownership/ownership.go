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
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
)

// Ownership reports which fields of an object are set by a client. The zero Ownership, of an
// object in memory or in a test, has no client at all.
type Ownership struct {
	entries []metav1.ManagedFieldsEntry
	text    string

	// The sources, once they have been decoded. A set of fields that is not JSON is nil.
	sets     []any
	manifest any
}

// Of returns the ownership of the fields of an object. The sources are not decoded before
// they are needed.
func Of(meta *metav1.ObjectMeta) Ownership {
	return Ownership{entries: meta.ManagedFields, text: meta.Annotations[corev1.LastAppliedConfigAnnotation]}
}

// HasManagedFields reports whether the object has managedFields. Without them, the owners
// of its fields are not known.
func (o *Ownership) HasManagedFields() bool { return len(o.entries) > 0 }

// IsSet reports whether a client set the field at a JSON pointer, such as
// /spec/serviceType, to its current value. equal reports whether a value of the last
// applied manifest, whose integers are int64, is that value. It is nil for objects, which are
// set if a client set one of their fields, or set them to {}: the fields of an object of the
// manifest have pointers of their own. The manifest may have another value, because it does
// not change when another client changes or removes the field.
//
// If managedFields have an object, but none of its fields, its fields are not set: all objects
// that can hold a derived field are granular in the schemas (x-kubernetes-map-type).
func (o *Ownership) IsSet(pointer string, equal func(value any) bool) bool {
	if o.isManaged(managed(pointer)) {
		return true
	}
	value, ok := find(o.lastApplied(), pointer)
	if object, isObject := value.(map[string]any); equal == nil {
		return isObject && len(object) == 0
	}
	return ok && equal(value)
}

// managed returns the pointer into managedFields of the field at a JSON pointer.
func managed(pointer string) string { return strings.ReplaceAll(pointer, "/", "/f:") }

// IsDeclared reports whether a manifest has the field at a JSON pointer, with any value: one of a
// server-side apply, or that of the last client-side apply. A number that was set by another
// request is not declared.
func (o *Ownership) IsDeclared(pointer string) bool {
	applied := Ownership{entries: slices.DeleteFunc(slices.Clone(o.entries), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != ""
	})}
	_, ok := find(o.lastApplied(), pointer)
	return ok || applied.isManaged(managed(pointer))
}

// lastApplied is the annotation of a client-side apply in managedFields.
const lastApplied = "/f:metadata/f:annotations/f:kubectl.kubernetes.io~1last-applied-configuration"

// IsPatched reports whether a client that applies no manifest has set the field at a JSON pointer
// of an object that has one, as by "kubectl patch". Of an object without a manifest that is not
// known: a client that replaces it sets all of its fields.
func (o *Ownership) IsPatched(pointer string) bool {
	var hasManifest, patched bool
	for i := range o.entries {
		entry := &o.entries[i]
		of := Ownership{entries: o.entries[i : i+1]}
		switch applies := entry.Operation == metav1.ManagedFieldsOperationApply || of.isManaged(lastApplied); {
		case entry.Subresource != "":
		case applies:
			hasManifest = true
		case of.isManaged(managed(pointer)):
			patched = true
		}
	}
	return hasManifest && patched
}

// IsItemSet is IsSet for an item of a list with keys. item is decoded JSON, whose integers are
// int64.
func (o *Ownership) IsItemSet(list string, item map[string]any, keys ...string) bool {
	key := map[string]any{}
	for _, name := range keys {
		key[name] = item[name]
	}
	text, err := json.Marshal(key)
	if err == nil && o.isManaged(patch.Key(managed(list), "k:"+string(text))) {
		return true
	}
	value, _ := find(o.lastApplied(), list)
	applied, _ := value.([]any)
	return slices.ContainsFunc(applied, func(other any) bool {
		fields, _ := other.(map[string]any)
		for name, field := range fields {
			if !reflect.DeepEqual(field, item[name]) {
				return false
			}
		}
		return len(fields) > 0
	})
}

// IsPortNameSet is IsSet for the name of a port. Ports are a list with the keys port and
// protocol.
func (o *Ownership) IsPortNameSet(port *modelv1.Port) bool {
	return o.isManaged(fmt.Sprintf(`/f:spec/f:ports/k:{"port":%d,"protocol":%q}/f:name`, port.Port, port.ProtocolOrDefault())) || o.isLastAppliedName(port)
}

// isManaged reports whether an entry of managedFields has a field.
func (o *Ownership) isManaged(pointer string) bool {
	for _, set := range o.managedSets() {
		if set == nil {
			return true // The field may be set by a client, so it must not change.
		}
		if _, ok := find(set, pointer); ok {
			return true
		}
	}
	return false
}

// managedSets returns the sets of fields of all entries.
func (o *Ownership) managedSets() []any {
	if o.sets != nil {
		return o.sets
	}
	o.sets = make([]any, 0, len(o.entries))
	for i := range o.entries {
		if fields := o.entries[i].FieldsV1; fields != nil {
			o.sets = append(o.sets, decode(fields.GetRawBytes()))
		}
	}
	return o.sets
}

// decode returns the value of a text, nil if it is not JSON. Integers stay integers.
func decode(text []byte) any {
	var value any
	if kjson.UnmarshalCaseSensitivePreserveInts(text, &value) != nil {
		return nil
	}
	return value
}

// find returns the value at a JSON pointer into objects.
func find(value any, pointer string) (any, bool) {
	for name := range strings.SplitSeq(pointer[1:], "/") {
		object, _ := value.(map[string]any)
		var ok bool
		if value, ok = object[patch.Unescape(name)]; !ok {
			return nil, false
		}
	}
	return value, true
}

func (o *Ownership) lastApplied() any {
	if o.text != "" {
		o.manifest, o.text = decode([]byte(o.text)), ""
	}
	return o.manifest
}

// isLastAppliedName reports whether the manifest of the last client-side apply has the
// name of a port.
func (o *Ownership) isLastAppliedName(port *modelv1.Port) bool {
	value, _ := find(o.lastApplied(), "/spec/ports")
	list, _ := value.([]any)
	return slices.ContainsFunc(list, func(item any) bool {
		written, _ := item.(map[string]any)
		protocol, _ := written["protocol"].(string)
		return written["port"] == int64(port.Port) && written["name"] == port.Name &&
			cmp.Or(corev1.Protocol(protocol), corev1.ProtocolTCP) == port.ProtocolOrDefault()
	})
}
