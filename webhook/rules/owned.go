// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// Owners tells which fields of an object somebody wrote. It has two witnesses.
//
// The API server works out managedFields before it calls mutating admission, so a
// field that a manager owns was typed, by hand or by a program, and one that nobody
// owns was filled in by admission. See
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
//
// A client-side apply does not send what is there already, so it never comes to own
// a field whose default somebody writes down later; but it leaves the whole
// manifest in an annotation.
//
// Neither is parsed before a question is asked. The zero Owners, of an object in
// memory or in a test, knows of no writer at all.
type Owners struct {
	entries  []metav1.ManagedFieldsEntry
	manifest string

	parsed  bool
	broken  bool
	sets    []fieldpath.Set
	applied any
}

// OwnersOf are the owners of an object's fields.
func OwnersOf(meta *metav1.ObjectMeta) Owners {
	return Owners{entries: meta.ManagedFields, manifest: meta.Annotations[corev1.LastAppliedConfigAnnotation]}
}

// Known says whether the object tells who owns what.
func (o *Owners) Known() bool { return len(o.entries) > 0 }

// Typed says whether somebody wrote the field that the names lead to, something in
// it, or all of what it lies in. managedFields that cannot be read count as an owner
// of everything: what may have been typed is not rewritten.
func (o *Owners) Typed(names ...string) bool {
	o.parse()
	path := fields(names)
	for i := range o.sets {
		if covers(&o.sets[i], path) {
			return true
		}
	}
	return o.broken || inTree(o.applied, names)
}

// Declared is Typed for those alone who say all that they want each time they say
// something, by an apply of either side: what they leave out, they don't want.
// Somebody with an editor wants the rest as it is.
func (o *Owners) Declared(names ...string) bool {
	o.parse()
	path := fields(names)
	for i := range o.sets {
		if o.entries[i].Operation == metav1.ManagedFieldsOperationApply && covers(&o.sets[i], path) {
			return true
		}
	}
	return inTree(o.applied, names)
}

// TypedPort is Typed for a field of a port. Ports are a list that is keyed by
// number and protocol.
func (o *Owners) TypedPort(port *modelv1.Port, name string) bool {
	o.parse()
	path := fields([]string{"spec", "ports", "", name})
	path[2] = fieldpath.KeyElementByFields("port", int64(port.Port), "protocol", string(Protocol(port)))
	for i := range o.sets {
		if covers(&o.sets[i], path) {
			return true
		}
	}
	return o.broken || inTree(appliedPort(o.applied, port), []string{name})
}

func fields(names []string) fieldpath.Path {
	path := make(fieldpath.Path, 0, len(names))
	for _, name := range names {
		path = append(path, fieldpath.FieldNameElement(name))
	}
	return path
}

func (o *Owners) parse() {
	if o.parsed {
		return
	}
	o.parsed = true
	// kubectl, which wrote the annotation, is who must be able to read it.
	_ = json.Unmarshal([]byte(o.manifest), &o.applied)
	o.sets = make([]fieldpath.Set, len(o.entries))
	for i := range o.entries {
		if o.entries[i].FieldsV1 == nil {
			continue
		}
		if err := o.sets[i].FromJSON(o.entries[i].FieldsV1.GetRawReader()); err != nil {
			o.sets[i], o.broken = fieldpath.Set{}, true
		}
	}
}

// covers says whether a set has the path, something below it, or something above it
// as a whole. Above it, a member with children is not owned as a whole: for an item
// of a list it only says that the item is there.
func covers(set *fieldpath.Set, path fieldpath.Path) bool {
	for _, element := range path[:len(path)-1] {
		children, ok := set.Children.Get(element)
		if !ok {
			return set.Members.Has(element)
		}
		set = children
	}
	last := path[len(path)-1]
	_, below := set.Children.Get(last)
	return below || set.Members.Has(last)
}

// inTree says whether decoded JSON has something at the end of names.
func inTree(tree any, names []string) bool {
	for _, name := range names {
		object, _ := tree.(map[string]any)
		tree = object[name]
	}
	return tree != nil
}

// appliedPort is a port in a manifest, nil if it is not there.
func appliedPort(manifest any, port *modelv1.Port) any {
	object, _ := manifest.(map[string]any)
	spec, _ := object["spec"].(map[string]any)
	list, _ := spec["ports"].([]any)
	for _, item := range list {
		fields, _ := item.(map[string]any)
		protocol, _ := fields["protocol"].(string)
		if protocol == "" {
			protocol = string(corev1.ProtocolTCP)
		}
		if fields["port"] == float64(port.Port) && protocol == string(Protocol(port)) {
			return fields
		}
	}
	return nil
}
