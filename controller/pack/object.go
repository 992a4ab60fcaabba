// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"fmt"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/controller/decode"
)

// Object is an object as a cache holds it. Handlers and predicates that a watch
// calls get it as it is; whoever reads from the cache gets a copy, and the copy is
// what was packed: DeepCopyObject opens it.
type Object struct {
	// ObjectMeta is what handlers ask of any object: its name, namespace, uid,
	// versions, timestamps and controller, and those annotations that it was packed
	// to show. All else is in the copy only.
	metav1.ObjectMeta
	form *form
	data string
}

// Pack packs an object, which it may change and which is not to be used any more.
// What cannot be encoded is returned as it is.
//
// The annotations named stay readable without opening the object. Objects that are
// alike are to be packed with the same likeness, a word of the caller's: the first
// of them is what the others are compressed against.
func Pack(obj client.Object, likeness string, annotations ...string) client.Object {
	if _, packed := obj.(*Object); packed {
		return obj
	}
	packed := &Object{ObjectMeta: shown(obj, annotations), form: formOf(obj, likeness)}
	show(obj, &metav1.ObjectMeta{})
	data, err := packed.form.encode(obj)
	if err != nil {
		show(obj, &packed.ObjectMeta)
		return obj
	}
	packed.data = data
	return packed
}

// Open is the object that was packed, or obj itself if it is not packed. It panics
// if that is no T.
func Open[T client.Object](obj client.Object) T {
	if packed, ok := obj.(*Object); ok {
		return packed.DeepCopyObject().(T)
	}
	return obj.(T)
}

// DeepCopyObject is the object that was packed. It shares nothing that can be
// changed with others.
func (o *Object) DeepCopyObject() runtime.Object {
	obj := o.form.empty()
	err := o.form.decode(o.data, obj)
	if err != nil {
		// It was encoded here, in this process, so something was decoded that cannot be
		// written and read again. A panic would stop the reconciliation of all objects.
		obj = o.form.empty()
		failure := decode.Failure{Message: fmt.Sprintf("the object in the cache cannot be read: %.500v", err)}
		failure.Mark(obj)
	}
	show(obj, o.DeepCopy()) // Of the metadata.
	return obj
}

// GetObjectKind is of no kind, as with all objects of a cache.
func (o *Object) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// shown is the part of an object's metadata that can be read without opening it.
func shown(obj client.Object, annotations []string) metav1.ObjectMeta {
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
	for _, key := range append(decode.Annotations(), annotations...) {
		if value, ok := obj.GetAnnotations()[key]; ok {
			metav1.SetMetaDataAnnotation(&meta, key, value)
		}
	}
	return meta
}

// show gives an object the metadata that is kept outside of what is encoded. The
// annotations are there in full anyway.
func show(obj client.Object, meta *metav1.ObjectMeta) {
	obj.SetName(meta.Name)
	obj.SetNamespace(meta.Namespace)
	obj.SetUID(meta.UID)
	obj.SetResourceVersion(meta.ResourceVersion)
	obj.SetGeneration(meta.Generation)
	obj.SetCreationTimestamp(meta.CreationTimestamp)
	obj.SetDeletionTimestamp(meta.DeletionTimestamp)
	obj.SetOwnerReferences(meta.OwnerReferences)
}
