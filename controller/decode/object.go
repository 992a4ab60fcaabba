// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/webhook/quantity"
	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
)

var (
	// strict is how an ordinary object is decoded.
	strict = json.WithUnmarshalers(json.UnmarshalFromFunc(readTime))
	// tolerant overlooks what client-go's decoder overlooks.
	tolerant = json.JoinOptions(strict, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
)

// object is the object in data, nil if that is no object of the kind. What cannot be
// decoded is left out of it, and the object says so (FailureOf): a decoder's error
// would end the list or the watch, and with it the reconciliation of all other objects.
func (o objects) object(data []byte) client.Object {
	if errs := quantity.Check(data, o.typ, nil); len(errs) == 0 {
		if obj := o.empty(); json.Unmarshal(data, obj, strict) == nil && o.clear(obj) {
			unmark(obj)
			return obj
		}
	}
	return o.parts(data)
}

// empty is a new object of the kind.
func (o objects) empty() client.Object { return reflect.New(o.typ).Interface().(client.Object) }

// clear empties an object's type, as typed clients do, and says whether it was this
// kind.
func (o objects) clear(obj client.Object) bool {
	if obj.GetObjectKind().GroupVersionKind() != o.kind {
		return false
	}
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return true
}

// parts decodes metadata, spec and status each by itself.
func (o objects) parts(data []byte) client.Object {
	var parts struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        jsontext.Value `json:"metadata"`
		Spec            jsontext.Value `json:"spec"`
		Status          jsontext.Value `json:"status"`
	}
	if json.Unmarshal(data, &parts, tolerant) != nil || parts.GroupVersionKind() != o.kind {
		return nil
	}
	obj, failure := o.empty(), &Failure{}
	o.metadata(parts.Metadata, obj, failure)
	if obj.GetName() == "" || obj.GetResourceVersion() == "" {
		return nil // No cache could hold it.
	}
	unmark(obj)
	if err := o.part("spec", parts.Spec, obj); err != nil {
		failure.add(describe("spec", err))
	}
	if err := o.part("status", parts.Status, obj); err != nil {
		failure.add(describe("status", err))
		failure.Status = true
	}
	if failure.Message != "" {
		failure.Mark(obj)
		report(o.kind.Kind, obj, failure)
	}
	return obj
}

// part decodes one member of an object into it, or leaves the object as it is.
func (o objects) part(name string, value jsontext.Value, into client.Object) error {
	if len(value) == 0 {
		return nil
	}
	document := fmt.Appendf(nil, `{%q:%s}`, name, value)
	if errs := quantity.Check(document, o.typ, nil); len(errs) > 0 {
		return &described{rules.First(errs).ToAggregate()}
	}
	if err := json.Unmarshal(document, o.empty(), tolerant); err != nil {
		return err
	}
	return json.Unmarshal(document, into, tolerant)
}

// metadata decodes the members of metadata one by one. Those of managedFields are for
// the API server; a client may write any time into them.
func (o objects) metadata(value jsontext.Value, into client.Object, failure *Failure) {
	if o.part("metadata", value, into) == nil {
		return
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(value, &members, tolerant); err != nil {
		return
	}
	for name, value := range members {
		err := o.part("metadata", fmt.Appendf(nil, `{%q:%s}`, name, value), into)
		if err != nil && name != "managedFields" {
			failure.add(describe("metadata."+name, err))
		}
	}
}

// readTime reads a time that can be written again. In UTC, which it is written in, its
// year must have four digits.
func readTime(in *jsontext.Decoder, into *metav1.Time) error {
	token, err := in.ReadToken()
	if err != nil {
		return err
	}
	switch token.Kind() {
	case 'n':
		*into = metav1.Time{}
		return nil
	case '"':
	default:
		return errors.New("a time must be a string")
	}
	read, err := time.Parse(time.RFC3339, token.String())
	if err != nil {
		return err
	}
	if year := read.UTC().Year(); year < 0 || year > 9999 {
		return fmt.Errorf("the year of %s is %d in UTC: it must be from 0 to 9999", token.String(), year)
	}
	into.Time = read.Truncate(time.Second).Local() // As it is written, so that it is the same when it is read again.
	return nil
}

// list fills a list of the kind with the objects in data, and says whether it did.
func (o objects) list(data []byte, into runtime.Object) bool {
	var list struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ListMeta  `json:"metadata"`
		Items           []jsontext.Value `json:"items"`
	}
	if json.Unmarshal(data, &list, tolerant) != nil || list.GroupVersionKind() != o.listKind() {
		return false
	}
	items := make([]runtime.Object, 0, len(list.Items))
	for _, item := range list.Items {
		obj := o.object(item)
		if obj == nil {
			return false
		}
		items = append(items, obj)
	}
	return fill(into, &list.Metadata, items) == nil
}

func (o objects) listKind() schema.GroupVersionKind {
	return o.kind.GroupVersion().WithKind(o.kind.Kind + "List")
}

func fill(into runtime.Object, metadata *metav1.ListMeta, items []runtime.Object) error {
	if err := meta.SetList(into, items); err != nil {
		return err
	}
	accessor, err := meta.ListAccessor(into)
	if err != nil {
		return err
	}
	accessor.SetResourceVersion(metadata.ResourceVersion)
	accessor.SetContinue(metadata.Continue)
	accessor.SetRemainingItemCount(metadata.RemainingItemCount)
	return nil
}
