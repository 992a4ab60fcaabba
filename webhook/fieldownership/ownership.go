// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

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
	"github.com/modelbox-operator/modelbox-operator/webhook/patch/raw"
)

// Ownership tells which fields of an object a client set. It has two sources.
//
// The API server works out managedFields before it calls mutating admission, so a
// field that a manager owns was set by a client, and one that no manager owns was
// filled in by admission. See
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
//
// A client-side apply does not send what is there already, so it never comes to own
// a field whose default is written into the manifest later; but it leaves the whole
// manifest in an annotation.
//
// Neither is read before a question is asked. The zero Ownership, of an object in memory
// or in a test, knows of no client at all.
type Ownership struct {
	entries  []metav1.ManagedFieldsEntry
	text     string
	manifest []byte // Valid JSON, or nothing.
	read     bool
}

// Of are the owners of an object's fields.
func Of(meta *metav1.ObjectMeta) Ownership {
	return Ownership{entries: meta.ManagedFields, text: meta.Annotations[corev1.LastAppliedConfigAnnotation]}
}

// Known says whether the object tells who owns what.
func (o *Ownership) HasManagedFields() bool { return len(o.entries) > 0 }

// Set says whether a client set the field that a JSON pointer such as
// /spec/serviceType names, to the value that it has. now says whether a scalar of a
// manifest is that value; nil is for objects, which a client set if it set something in
// them, or set them to {}.
//
// An object that a manager owns, with nothing in it, says nothing of its members: all
// objects that hold a derived field are granular in the schemas (x-kubernetes-map-type).
func (o *Ownership) IsSet(pointer string, now func(text string) bool) bool {
	return o.isManaged(strings.ReplaceAll(pointer, "/", "/f:")) || o.isLastApplied(pointer, now)
}

// SetName is Set for the name of a port. Ports are a list with the keys port and
// protocol.
func (o *Ownership) IsPortNameSet(port *modelv1.Port) bool {
	protocol := port.ProtocolOrDefault()
	return o.isManaged(fmt.Sprintf(`/f:spec/f:ports/k:{"port":%d,"protocol":%q}/f:name`, port.Port, protocol)) || o.isLastAppliedName(port, protocol)
}

// managed says whether an entry of managedFields has a field.
func (o *Ownership) isManaged(pointer string) bool {
	for i := range o.entries {
		fields := o.entries[i].FieldsV1
		if fields == nil {
			continue
		}
		set := fields.GetRawBytes()
		if !json.Valid(set) {
			return true // What may have been set by a client is not rewritten.
		}
		if _, ok := raw.Find(set, pointer); ok {
			return true
		}
	}
	return false
}

// applied says whether the manifest of the last client-side apply has a field with the
// value that the field has now, or an empty object. What is in other objects is asked
// for by itself. The manifest may have another value, because it stays as it is when
// another client changes or removes the field.
func (o *Ownership) isLastApplied(pointer string, now func(text string) bool) bool {
	value, ok := raw.Find(o.lastApplied(), pointer)
	switch {
	case !ok:
		return false
	case now == nil:
		return value[0] == '{' && len(bytes.TrimSpace(value[1:len(value)-1])) == 0
	}
	return now(scalar(value))
}

func (o *Ownership) lastApplied() []byte {
	if !o.read {
		o.read = true
		o.manifest = []byte(o.text)
		if !json.Valid(o.manifest) {
			o.manifest = []byte("null") // Which has no fields.
		}
	}
	return o.manifest
}

// scalar is the text of a JSON string, or any other value as it is written.
func scalar(value []byte) string {
	if text := ""; json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// appliedName says whether the manifest of the last client-side apply gives a port its
// name.
func (o *Ownership) isLastAppliedName(port *modelv1.Port, protocol corev1.Protocol) bool {
	list, _ := raw.Find(o.lastApplied(), "/spec/ports")
	var ports []modelv1.Port
	if len(list) == 0 || json.Unmarshal(list, &ports) != nil {
		return false
	}
	return slices.ContainsFunc(ports, func(p modelv1.Port) bool {
		return p.Port == port.Port && p.ProtocolOrDefault() == protocol && p.Name == port.Name
	})
}
