// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
	"github.com/klauspost/compress/s2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// form is how objects of one type that are alike are encoded.
type form struct {
	typ reflect.Type
	// model is what the others are compressed against, once there is one. It never
	// changes afterwards, or what was packed before could not be opened.
	model atomic.Pointer[s2.Dict]
}

// like names a form.
type like struct {
	typ      reflect.Type
	likeness string
}

var forms sync.Map // of *form, by like

func formOf(obj client.Object, likeness string) *form {
	typ := reflect.TypeOf(obj).Elem()
	key := like{typ, likeness}
	if known, ok := forms.Load(key); ok {
		return known.(*form)
	}
	known, _ := forms.LoadOrStore(key, &form{typ: typ})
	return known.(*form)
}

// empty is a new object of the type.
func (f *form) empty() client.Object { return reflect.New(f.typ).Interface().(client.Object) }

// The first byte of what was encoded.
const (
	plain      = 'p'
	compressed = 'c'
)

// encode is the object as text. The first of a form makes its model.
func (f *form) encode(obj client.Object) (string, error) {
	data, err := Marshal(obj)
	if err != nil {
		return "", fmt.Errorf("packing %T: %w", obj, err)
	}
	model := f.model.Load()
	if model == nil {
		f.model.CompareAndSwap(nil, s2.MakeDict(data, nil)) // nil if data is too short.
		return string(plain) + string(data), nil
	}
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	if need := s2.MaxEncodedLen(len(data)) + 1; cap(*buffer) < need {
		*buffer = make([]byte, need)
	}
	short := model.Encode((*buffer)[1:cap(*buffer)], data)
	(*buffer)[0] = compressed
	return string((*buffer)[:1+len(short)]), nil
}

// decode fills an empty object from text.
func (f *form) decode(text string, into client.Object) error {
	if text[0] == plain {
		return unmarshal([]byte(text[1:]), into)
	}
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	data, err := f.model.Load().Decode((*buffer)[:0], []byte(text[1:]))
	if err != nil {
		return err
	}
	*buffer = data
	return unmarshal(data, into)
}

// buffers are kept between objects. Neither decoder keeps what it is given.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// binary is what the API's own types can do: protobuf, which is shorter than JSON and
// quicker both ways.
type binary interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// asInGo leaves out what encoding/json does, keeps nil apart from what is empty, and
// like objects alike.
var asInGo = json.JoinOptions(
	jsonv1.OmitEmptyWithLegacySemantics(true), json.FormatNilSliceAsNull(true), json.FormatNilMapAsNull(true), json.Deterministic(true),
)

// Marshal is an object in the form that it is kept in: protobuf where its type has
// that, and JSON otherwise. It is the same for the same object, for maps are sorted.
func Marshal(obj client.Object) ([]byte, error) {
	if obj, ok := obj.(binary); ok {
		return obj.Marshal()
	}
	return json.Marshal(obj, asInGo)
}

func unmarshal(data []byte, into client.Object) error {
	if into, ok := into.(binary); ok {
		return into.Unmarshal(data)
	}
	return json.Unmarshal(data, into)
}
