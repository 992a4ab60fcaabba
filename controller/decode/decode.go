// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decode reads what watches tell of custom resources.
//
// An API server tells of them in JSON only, and client-go's decoder goes over the text
// of each event seven times: that was a third of what the controller did for a new
// object. Here it is gone over three times. What this decoder refuses (a member that
// is there twice, text that is not UTF-8, a wrong type) and what it does not expect
// (the Status that tells of an error) is given to client-go's, which has the last word.
package decode

import (
	"mime"
	"slices"

	"github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// codecs are client-go's for a scheme, but for the watches of one kind.
type codecs struct {
	runtime.NegotiatedSerializer
	scheme *runtime.Scheme
	kind   schema.GroupVersionKind
}

func newCodecs(scheme *runtime.Scheme, kind schema.GroupVersionKind) codecs {
	factory := serializer.WithoutConversionCodecFactory{CodecFactory: serializer.NewCodecFactory(scheme)}
	return codecs{factory, scheme, kind}
}

// SupportedMediaTypes are client-go's, with another decoder for JSON's events.
func (c codecs) SupportedMediaTypes() []runtime.SerializerInfo {
	infos := slices.Clone(c.NegotiatedSerializer.SupportedMediaTypes())
	for i := range infos {
		if media, _, err := mime.ParseMediaType(infos[i].MediaType); err == nil && media == runtime.ContentTypeJSON {
			stream := *infos[i].StreamSerializer
			stream.Serializer = events{stream.Serializer}
			infos[i].StreamSerializer = &stream
		}
	}
	return infos
}

// DecoderToVersion decodes the objects.
func (c codecs) DecoderToVersion(decoder runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return objects{c.NegotiatedSerializer.DecoderToVersion(decoder, version), c.scheme, c.kind}
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

// objects decodes the objects of one kind.
type objects struct {
	runtime.Decoder
	scheme *runtime.Scheme
	kind   schema.GroupVersionKind
}

// Decode decodes an object of the kind. Its type stays empty, as with all typed
// clients.
func (o objects) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if into == nil {
		if obj := o.quickly(data); obj != nil {
			return obj, &o.kind, nil
		}
	}
	return o.Decoder.Decode(data, defaults, into)
}

// quickly is the object, nil if it is not of the kind or not as it should be.
func (o objects) quickly(data []byte) runtime.Object {
	obj, err := o.scheme.New(o.kind)
	if err != nil || json.Unmarshal(data, obj) != nil || obj.GetObjectKind().GroupVersionKind() != o.kind {
		return nil
	}
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return obj
}
