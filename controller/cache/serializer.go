// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

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

// negotiatedSerializer is client-go's for a scheme, with the decoders of this package for
// the objects of one kind.
type negotiatedSerializer struct {
	runtime.NegotiatedSerializer
	kind schema.GroupVersionKind
	typ  reflect.Type
}

func newSerializer(scheme *runtime.Scheme, kind schema.GroupVersionKind) negotiatedSerializer {
	factory := serializer.WithoutConversionCodecFactory{CodecFactory: serializer.NewCodecFactory(scheme)}
	return negotiatedSerializer{factory, kind, scheme.AllKnownTypes()[kind]}
}

// SupportedMediaTypes returns those of client-go, with another decoder and framer for watch
// events in JSON.
func (s negotiatedSerializer) SupportedMediaTypes() []runtime.SerializerInfo {
	infos := slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes())
	for i := range infos {
		if media, _, err := mime.ParseMediaType(infos[i].MediaType); err == nil && media == runtime.ContentTypeJSON {
			stream := *infos[i].StreamSerializer
			stream.Serializer, stream.Framer = eventDecoder{stream.Serializer}, depthFramer{stream.Framer}
			infos[i].StreamSerializer = &stream
		}
	}
	return infos
}

// DecoderToVersion returns the decoder of the objects.
func (s negotiatedSerializer) DecoderToVersion(decoder runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return objectDecoder{s.NegotiatedSerializer.DecoderToVersion(decoder, version), s.kind, s.typ}
}

// eventDecoder decodes watch events and leaves the objects in them encoded.
type eventDecoder struct{ runtime.Serializer }

// Decode decodes an event into a *metav1.WatchEvent, and anything else as client-go does.
func (d eventDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if event, ok := into.(*metav1.WatchEvent); ok && json.Unmarshal(data, event) == nil {
		return event, new(metav1.SchemeGroupVersion.WithKind("WatchEvent")), nil
	}
	return d.Serializer.Decode(data, defaults, into)
}

// objectDecoder decodes the objects of one kind, and lists of them.
type objectDecoder struct {
	runtime.Decoder
	kind schema.GroupVersionKind
	typ  reflect.Type
}

// Decode decodes an object or a list of the kind, and anything else, such as the Status of
// an error, as client-go does. The TypeMeta of an object stays empty, as in all typed
// clients.
func (d objectDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if into == nil {
		if obj := d.decodeObject(data); obj != nil {
			return obj, &d.kind, nil
		}
	} else if d.decodeList(data, into) || d.decodeDeepList(data, into) {
		return into, new(d.listKind()), nil
	}
	return d.Decoder.Decode(data, defaults, into)
}
