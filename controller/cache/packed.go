// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"reflect"
	"sync"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// packedObject is an object in the cache, encoded except for the metadata that predicates
// and event handlers read. These get the packed object itself. A reader of the cache gets a
// copy, and the copy is the decoded object: DeepCopyObject decodes it.
type packedObject struct {
	// ObjectMeta has name, namespace, uid, resource version, generation, timestamps, owner
	// references, and the readable annotations.
	metav1.ObjectMeta
	codec *codec
	data  string
}

// Unpack returns the object of type T that a predicate or an event handler was called with,
// whether the cache packs objects or not. It panics if obj is of another type.
func Unpack[T client.Object](obj client.Object) T {
	if packed, ok := obj.(*packedObject); ok {
		return packed.DeepCopyObject().(T)
	}
	return obj.(T)
}

// packer packs the objects of one cache.
type packer struct{ codecs sync.Map } // Of *codec, by codecKey.

// codecKey selects the codec of an object. Children and foreign objects of one type, which
// are trimmed, differ in most of their fields.
type codecKey struct {
	typ     reflect.Type
	foreign bool
}

func (p *packer) codecFor(obj client.Object, foreign bool) *codec {
	key := codecKey{reflect.TypeOf(obj).Elem(), foreign}
	if loaded, ok := p.codecs.Load(key); ok {
		return loaded.(*codec)
	}
	loaded, _ := p.codecs.LoadOrStore(key, &codec{typ: key.typ})
	return loaded.(*codec)
}

// pack packs an object, which it may change and which must not be used afterwards. An object
// that cannot be encoded is returned unchanged.
func (p *packer) pack(obj client.Object, foreign bool) client.Object {
	packed := &packedObject{ObjectMeta: readableMetadata(obj), codec: p.codecFor(obj, foreign)}
	setMetadata(obj, &metav1.ObjectMeta{})
	data, err := packed.codec.encode(obj)
	if err != nil {
		setMetadata(obj, &packed.ObjectMeta)
		return obj
	}
	packed.data = data
	return packed
}

// DeepCopyObject decodes the object. The result shares nothing that can be changed with
// others.
func (o *packedObject) DeepCopyObject() runtime.Object {
	obj := o.codec.newObject()
	err := o.codec.decode(o.data, obj)
	if err != nil {
		// This process encoded the object, so it decoded a value that cannot be encoded and
		// decoded again. A panic would stop the reconciliation of all objects.
		obj = o.codec.newObject()
		failure := DecodeError{Message: fmt.Sprintf("the object in the cache cannot be read: %.500v", err)}
		failure.annotate(obj)
	}
	setMetadata(obj, o.DeepCopy()) // DeepCopy is that of ObjectMeta.
	return obj
}

// GetObjectKind returns no kind, as for all objects of a cache.
func (o *packedObject) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// readableMetadata returns the part of an object's metadata that stays readable.
func readableMetadata(obj client.Object) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Name:              obj.GetName(),
		Namespace:         unique.Make(obj.GetNamespace()).Value(),
		UID:               obj.GetUID(),
		ResourceVersion:   obj.GetResourceVersion(),
		Generation:        obj.GetGeneration(),
		CreationTimestamp: obj.GetCreationTimestamp(),
		DeletionTimestamp: obj.GetDeletionTimestamp(),
		OwnerReferences:   obj.GetOwnerReferences(),
	}
	for i := range meta.OwnerReferences {
		owner := &meta.OwnerReferences[i]
		owner.APIVersion = unique.Make(owner.APIVersion).Value()
		owner.Kind = unique.Make(owner.Kind).Value()
	}
	for _, key := range readable {
		if value, ok := obj.GetAnnotations()[key]; ok {
			metav1.SetMetaDataAnnotation(&meta, key, value)
		}
	}
	return meta
}

// setMetadata sets the metadata of an object that is kept beside the encoded object. The
// annotations are not set: the encoded object has all of them.
func setMetadata(obj client.Object, meta *metav1.ObjectMeta) {
	obj.SetName(meta.Name)
	obj.SetNamespace(meta.Namespace)
	obj.SetUID(meta.UID)
	obj.SetResourceVersion(meta.ResourceVersion)
	obj.SetGeneration(meta.Generation)
	obj.SetCreationTimestamp(meta.CreationTimestamp)
	obj.SetDeletionTimestamp(meta.DeletionTimestamp)
	obj.SetOwnerReferences(meta.OwnerReferences)
}
