// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

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

// codec encodes and decodes objects of one type that have much in common.
type codec struct {
	typ reflect.Type
	// dictionary is the first object that was encoded; the others are compressed against it.
	// It never changes afterwards, because what was encoded with it could not be decoded.
	dictionary atomic.Pointer[s2.Dict]
}

// newObject returns an empty object of the type.
func (c *codec) newObject() client.Object { return reflect.New(c.typ).Interface().(client.Object) }

// The first byte of an encoded object.
const (
	uncompressed = 'p'
	compressed   = 'c'
)

// encode returns the encoded object. The first one becomes the dictionary.
func (c *codec) encode(obj client.Object) (string, error) {
	data, err := marshal(obj)
	if err != nil {
		return "", fmt.Errorf("packing %T: %w", obj, err)
	}
	dictionary := c.dictionary.Load()
	if dictionary == nil {
		c.dictionary.CompareAndSwap(nil, s2.MakeDict(data, nil)) // nil if data is too short.
		return string(uncompressed) + string(data), nil
	}
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	if need := s2.MaxEncodedLen(len(data)) + 1; cap(*buffer) < need {
		*buffer = make([]byte, need)
	}
	short := dictionary.Encode((*buffer)[1:cap(*buffer)], data)
	(*buffer)[0] = compressed
	return string((*buffer)[:1+len(short)]), nil
}

// decode decodes an object into an empty one.
func (c *codec) decode(text string, into client.Object) error {
	if text[0] == uncompressed {
		return unmarshal([]byte(text[1:]), into)
	}
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	data, err := c.dictionary.Load().Decode((*buffer)[:0], []byte(text[1:]))
	if err != nil {
		return err
	}
	*buffer = data
	return unmarshal(data, into)
}

// buffers are reused between objects. Neither decoder keeps its input.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// protobuf is implemented by Kubernetes' own types. Protobuf is shorter than JSON, and
// faster to encode and to decode.
type protobuf interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// asInGo omits what encoding/json omits, keeps nil and empty values apart, and encodes equal
// objects equally.
var asInGo = json.JoinOptions(
	jsonv1.OmitEmptyWithLegacySemantics(true), json.FormatNilSliceAsNull(true), json.FormatNilMapAsNull(true), json.Deterministic(true),
)

// marshal encodes an object: in protobuf where its type has that, and in JSON otherwise.
func marshal(obj client.Object) ([]byte, error) {
	if obj, ok := obj.(protobuf); ok {
		return obj.Marshal()
	}
	return json.Marshal(obj, asInGo)
}

func unmarshal(data []byte, into client.Object) error {
	if into, ok := into.(protobuf); ok {
		return into.Unmarshal(data)
	}
	return json.Unmarshal(data, into)
}
