// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

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

	"github.com/modelbox-operator/modelbox-operator/kinds/quantity"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

var (
	// strict are the options for an object that can be decoded as it is.
	strict = json.WithUnmarshalers(json.UnmarshalFromFunc(decodeTime))
	// lenient are the options that accept what client-go's decoder accepts.
	lenient = json.JoinOptions(strict, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
)

// decodeObject returns the object in data, nil if data is not an object of the kind. A part
// that cannot be decoded is left empty and reported in an annotation of the object
// (DecodeErrorOf): a decoder that returned an error would end the list or the watch, and
// with it the reconciliation of all other objects.
func (d objectDecoder) decodeObject(data []byte) client.Object {
	if errs := quantity.Check(data, d.typ, nil); len(errs) == 0 {
		if obj := d.newObject(); json.Unmarshal(data, obj, strict) == nil && d.clearType(obj) {
			removeDecodeError(obj)
			return obj
		}
	}
	return d.decodeParts(data)
}

// newObject returns an empty object of the kind.
func (d objectDecoder) newObject() client.Object {
	return reflect.New(d.typ).Interface().(client.Object)
}

// clearType empties the TypeMeta of an object, as typed clients do, and reports whether it
// was that of the kind.
func (d objectDecoder) clearType(obj client.Object) bool {
	if obj.GetObjectKind().GroupVersionKind() != d.kind {
		return false
	}
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return true
}

// decodeParts decodes metadata, spec and status each by itself.
func (d objectDecoder) decodeParts(data []byte) client.Object {
	var parts struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        jsontext.Value `json:"metadata"`
		Spec            jsontext.Value `json:"spec"`
		Status          jsontext.Value `json:"status"`
	}
	if json.Unmarshal(data, &parts, lenient) != nil || parts.GroupVersionKind() != d.kind {
		return nil
	}
	obj, failure := d.newObject(), &DecodeError{}
	d.decodeMetadata(parts.Metadata, obj, failure)
	if obj.GetName() == "" || obj.GetResourceVersion() == "" {
		return nil // No cache can hold such an object.
	}
	removeDecodeError(obj)
	if err := d.decodePart("spec", parts.Spec, obj); err != nil {
		failure.add(describe("spec", err))
	}
	if err := d.decodePart("status", parts.Status, obj); err != nil {
		failure.add(describe("status", err))
		failure.Status = true
	}
	if failure.Message != "" {
		failure.annotate(obj)
		undecodable.log(d.kind.Kind, obj, failure)
	}
	return obj
}

// decodePart decodes one member of an object into it, or leaves the object as it is.
func (d objectDecoder) decodePart(name string, value jsontext.Value, into client.Object) error {
	if len(value) == 0 {
		return nil
	}
	document := fmt.Appendf(nil, `{%q:%s}`, name, value)
	if errs := quantity.Check(document, d.typ, nil); len(errs) > 0 {
		return &fieldError{rules.First(errs).ToAggregate()}
	}
	if err := json.Unmarshal(document, d.newObject(), lenient); err != nil {
		return err
	}
	return json.Unmarshal(document, into, lenient)
}

// decodeMetadata decodes the members of metadata one by one. An error in managedFields is
// not reported: only the API server reads these, and a client may write any time into them.
func (d objectDecoder) decodeMetadata(value jsontext.Value, into client.Object, failure *DecodeError) {
	if d.decodePart("metadata", value, into) == nil {
		return
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(value, &members, lenient); err != nil {
		return
	}
	for name, value := range members {
		err := d.decodePart("metadata", fmt.Appendf(nil, `{%q:%s}`, name, value), into)
		if err != nil && name != "managedFields" {
			failure.add(describe("metadata."+name, err))
		}
	}
}

// decodeTime decodes a time that can be encoded again: in UTC, in which it is encoded, its
// year must have four digits.
func decodeTime(in *jsontext.Decoder, into *metav1.Time) error {
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
	parsed, err := time.Parse(time.RFC3339, token.String())
	if err != nil {
		return err
	}
	if year := parsed.UTC().Year(); year < 0 || year > 9999 {
		return fmt.Errorf("the year of %s is %d in UTC: it must be from 0 to 9999", token.String(), year)
	}
	into.Time = parsed.Truncate(time.Second).Local() // Encoded and decoded again, it is the same.
	return nil
}

// decodeList fills a list of the kind with the objects in data, and reports whether data is
// such a list.
func (d objectDecoder) decodeList(data []byte, into runtime.Object) bool {
	var list struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ListMeta  `json:"metadata"`
		Items           []jsontext.Value `json:"items"`
	}
	if json.Unmarshal(data, &list, lenient) != nil || list.GroupVersionKind() != d.listKind() {
		return false
	}
	items := make([]runtime.Object, 0, len(list.Items))
	for _, item := range list.Items {
		obj := d.decodeObject(item)
		if obj == nil {
			return false
		}
		items = append(items, obj)
	}
	return setList(into, &list.Metadata, items) == nil
}

func (d objectDecoder) listKind() schema.GroupVersionKind {
	return d.kind.GroupVersion().WithKind(d.kind.Kind + "List")
}

func setList(into runtime.Object, metadata *metav1.ListMeta, items []runtime.Object) error {
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
