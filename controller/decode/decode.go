// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decode reads lists and watches of custom resources.
//
// An object that cannot be decoded, because it was stored before its schema refused
// such an object, ends client-go's list or watch: none of its kind is then reconciled
// any more. Here each object is decoded by itself, and one that cannot be decoded
// whole is handed on with its metadata, and with what could be decoded.
//
// It is also quicker. An API server sends custom resources in JSON only, and client-go's
// decoder goes over the text of each event seven times: that was a third of what the
// controller did for a new object. Here it is gone over four times. What is no object
// of the kind (the Status that tells of an error) is given to client-go's decoder.
package decode

import (
	"mime"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// codecs are client-go's for a scheme, but for one kind.
type codecs struct {
	runtime.NegotiatedSerializer
	kind schema.GroupVersionKind
	typ  reflect.Type
}

func newCodecs(scheme *runtime.Scheme, kind schema.GroupVersionKind) codecs {
	factory := serializer.WithoutConversionCodecFactory{CodecFactory: serializer.NewCodecFactory(scheme)}
	return codecs{factory, kind, scheme.AllKnownTypes()[kind]}
}

// SupportedMediaTypes are client-go's, with another decoder and framer for JSON's events.
func (c codecs) SupportedMediaTypes() []runtime.SerializerInfo {
	infos := slices.Clone(c.NegotiatedSerializer.SupportedMediaTypes())
	for i := range infos {
		if media, _, err := mime.ParseMediaType(infos[i].MediaType); err == nil && media == runtime.ContentTypeJSON {
			stream := *infos[i].StreamSerializer
			stream.Serializer, stream.Framer = events{stream.Serializer}, framer{stream.Framer}
			infos[i].StreamSerializer = &stream
		}
	}
	return infos
}

// DecoderToVersion decodes the objects.
func (c codecs) DecoderToVersion(decoder runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return objects{c.NegotiatedSerializer.DecoderToVersion(decoder, version), c.kind, c.typ}
}

// events decodes watch events, and leaves the objects in them as text.
type events struct{ runtime.Serializer }

// Decode decodes an event, as *metav1.WatchEvent; anything else as client-go does.
func (e events) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if event, ok := into.(*metav1.WatchEvent); ok && json.Unmarshal(data, event) == nil {
		return event, new(metav1.SchemeGroupVersion.WithKind("WatchEvent")), nil
	}
	return e.Serializer.Decode(data, defaults, into)
}

// objects decodes the objects of one kind, and lists of them.
type objects struct {
	runtime.Decoder
	kind schema.GroupVersionKind
	typ  reflect.Type
}

// Decode decodes an object or a list of the kind. Its type stays empty, as with all
// typed clients.
func (o objects) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if into == nil {
		if obj := o.object(data); obj != nil {
			return obj, &o.kind, nil
		}
	} else if o.list(data, into) || o.deepList(data, into) {
		return into, new(o.listKind()), nil
	}
	return o.Decoder.Decode(data, defaults, into)
}
