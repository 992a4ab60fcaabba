// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cache returns the controller's informer cache: controller-runtime's, in which the
// objects of the project's own kinds are their JSON, and all objects are trimmed. Readers get
// ordinary objects: the JSON is decoded where an object is read.
//
// client-go's informer ends its list or watch with the first object that it cannot decode, and
// then no object of the kind is reconciled any more. Here the informer decodes no spec and no
// status, and a reader gets an UndecodableError for that object alone. Drop this file when an
// informer can skip an object.
package cache

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// New returns the cache of a manager. It has the type of ctrlcache.NewCacheFunc.
func New(config *rest.Config, opts ctrlcache.Options) (ctrlcache.Cache, error) {
	c := &decodingCache{typed: opts.Scheme, stored: runtime.NewScheme(), namespaces: slices.Sorted(maps.Keys(opts.DefaultNamespaces))}
	utilruntime.Must(clientgoscheme.AddToScheme(c.stored))
	err := errors.Join(add[modelv1.ModelBox](c), add[appv1.App](c), add[mydomainv1beta1.Genericdaemon](c),
		add[extensionv1.UnitedDeployment](c), add[mtsrev1.Eru](c))
	if err != nil {
		return nil, err
	}
	opts.Scheme, opts.DefaultTransform, opts.NewInformer = c.stored, Trim, newInformer
	opts.ReaderFailOnMissingInformer = true // A read would start one, and wait for it, of a kind that the cluster has no more.
	c.Cache, err = ctrlcache.New(config, opts)
	return c, err
}

// UndecodableError reports an object that cannot be decoded. A reader gets the object with its
// metadata, and with its status if that can be decoded.
type UndecodableError struct {
	Err error
	// Status is the stored status, an object in JSON. StatusToo is true if it is not decoded.
	Status    []byte
	StatusToo bool
}

func (e *UndecodableError) Error() string { return rules.Cut(e.Err.Error(), 1000) }

func (e *UndecodableError) Unwrap() error { return e.Err }

// Typed returns the object of type T that an event handler or a predicate was called with.
func Typed[T client.Object](obj client.Object) (T, error) {
	typed, err := decoded(obj)
	return typed.(T), err
}

// decoded returns an object of the cache as readers get it.
func decoded(obj client.Object) (client.Object, error) {
	if own, ok := obj.(undecoded); ok {
		return own.decoded()
	}
	return obj, nil
}

// undecoded is implemented by *stored[T].
type undecoded interface {
	client.Object
	decoded() (client.Object, error)
	decode(into client.Object) error
	trim()
}

// stored is an object of the kind T as it is in the cache: decoded metadata, and the JSON of spec
// and status. A scheme has another Go type for each kind, hence T.
type stored[T any] struct {
	metav1.TypeMeta
	objectMeta `json:"metadata"`
	Spec       json.RawMessage `json:"spec"`
	Status     json.RawMessage `json:"status"`
	// tooLong is the length of a spec that trim has removed.
	tooLong int
}

// objectMeta does not decode managedFields, in which a client can write what cannot be decoded.
type objectMeta struct {
	metav1.ObjectMeta
	ManagedFields json.RawMessage `json:"managedFields"`
}

// trim removes what is not read of metadata, a spec that is longer than admission permits, and a
// status that is longer than the controller writes.
func (s *stored[T]) trim() {
	left := budget(maxContent)
	s.objectMeta = objectMeta{ObjectMeta: left.metadata(s)}
	if len(s.Spec) > rules.MaxBytes {
		s.tooLong, s.Spec = len(s.Spec), nil
	}
	if len(s.Status) > rules.MaxBytes {
		s.Status = nil
	}
}

// DeepCopyObject implements runtime.Object. The copies share their JSON, which is never changed.
func (s *stored[T]) DeepCopyObject() runtime.Object {
	out := *s
	s.DeepCopyInto(&out.ObjectMeta)
	return &out
}

func (s *stored[T]) decoded() (client.Object, error) {
	out := any(new(T)).(client.Object)
	return out, s.decode(out)
}

// decode decodes the object into one of type *T.
func (s *stored[T]) decode(into client.Object) error {
	err := s.decodeParts(into, s.Spec, s.Status)
	if s.tooLong > 0 {
		err = fmt.Errorf("spec: has %d bytes; at most %d are allowed", s.tooLong, rules.MaxBytes)
	}
	if err == nil {
		return nil
	}
	failure := &UndecodableError{Err: err, Status: s.Status}
	if !bytes.HasPrefix(s.Status, []byte("{")) {
		failure.Status = []byte("{}")
	}
	if s.decodeParts(into, nil, s.Status) != nil {
		failure.StatusToo = true
		_ = s.decodeParts(into, nil, nil) // An empty object can be decoded.
	}
	return failure
}

func (s *stored[T]) decodeParts(into client.Object, spec, status []byte) error {
	*any(into).(*T) = *new(T)
	*into.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta) = *s.DeepCopy()
	into.GetObjectKind().SetGroupVersionKind(s.GroupVersionKind())
	document := fmt.Appendf(nil, `{"spec":%s,"status":%s}`, cmp.Or(string(spec), "null"), cmp.Or(string(status), "null"))
	var tree map[string]any
	if err := utiljson.Unmarshal(document, &tree); err != nil {
		return err
	}
	if errs := rules.Unbuildable(rules.Expensive(nil, tree)); len(errs) > 0 {
		return rules.First(errs).ToAggregate()
	}
	return utiljson.Unmarshal(document, into)
}

// storedList is a list of stored objects.
type storedList[T any] struct {
	metav1.TypeMeta
	metav1.ListMeta `json:"metadata"`
	Items           []stored[T] `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *storedList[T]) DeepCopyObject() runtime.Object {
	out := *l
	l.DeepCopyInto(&out.ListMeta)
	out.Items = make([]stored[T], len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*stored[T])
	}
	return &out
}

// add adds a kind to the scheme of the stored objects.
func add[T any](c *decodingCache) error {
	kinds, _, err := c.typed.ObjectKinds(any(new(T)).(runtime.Object))
	if err != nil {
		return err
	}
	version := kinds[0].GroupVersion()
	c.stored.AddKnownTypeWithName(kinds[0], &stored[T]{})
	c.stored.AddKnownTypeWithName(version.WithKind(kinds[0].Kind+"List"), &storedList[T]{})
	metav1.AddToGroupVersion(c.stored, version)
	return nil
}

// decodingCache decodes the objects of the project's kinds when they are read.
type decodingCache struct {
	ctrlcache.Cache
	// typed has the types that readers ask for, stored has those in the cache.
	typed, stored *runtime.Scheme
	namespaces    []string
}

// namespacesOf returns the namespaces that a cache is limited to, and the empty name if that is
// none.
func namespacesOf(c ctrlcache.Cache) []string {
	if own, ok := c.(*decodingCache); ok && len(own.namespaces) > 0 {
		return own.namespaces
	}
	return []string{metav1.NamespaceAll}
}

// storedAs returns an empty object or list of the type that the cache has for obj, and obj itself
// if that is its type.
func storedAs[T runtime.Object](c *decodingCache, obj T) T {
	kinds, _, err := c.typed.ObjectKinds(obj)
	if _, untyped := any(obj).(runtime.Unstructured); untyped || err != nil {
		return obj // Metadata alone, for example, or a kind that has no Go type here.
	}
	if in, err := c.stored.New(kinds[0]); err == nil && reflect.TypeOf(in) != reflect.TypeOf(obj) {
		return in.(T)
	}
	return obj
}

// Get implements client.Reader. It may return an UndecodableError.
func (c *decodingCache) Get(ctx context.Context, key client.ObjectKey, out client.Object, opts ...client.GetOption) error {
	in := storedAs(c, out)
	err := c.Cache.Get(ctx, key, in, opts...)
	if own, ok := in.(undecoded); ok && err == nil {
		return own.decode(out)
	}
	return err
}

// List implements client.Reader. It leaves out objects that cannot be decoded.
func (c *decodingCache) List(ctx context.Context, out client.ObjectList, opts ...client.ListOption) error {
	in := storedAs(c, out)
	if err := c.Cache.List(ctx, in, opts...); err != nil || in == out {
		return err
	}
	var items []runtime.Object
	err := meta.EachListItem(in, func(item runtime.Object) error {
		if typed, err := item.(undecoded).decoded(); err == nil {
			items = append(items, typed)
		}
		return nil
	})
	return errors.Join(err, meta.SetList(out, items))
}

// GetInformer implements ctrlcache.Informers. Its event handlers get the stored objects.
func (c *decodingCache) GetInformer(ctx context.Context, obj client.Object, opts ...ctrlcache.InformerGetOption) (ctrlcache.Informer, error) {
	return c.Cache.GetInformer(ctx, storedAs(c, obj), opts...)
}

// IndexField implements client.FieldIndexer. No object that cannot be decoded is in an index.
func (c *decodingCache) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	return c.Cache.IndexField(ctx, storedAs(c, obj), field, func(item client.Object) []string {
		typed, err := decoded(item)
		if err != nil {
			return nil
		}
		return extract(typed)
	})
}
