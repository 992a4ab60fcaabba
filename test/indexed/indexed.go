// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package indexed is the part of an informer cache that readers and field indexes use: a
// store of client-go without an informer, whose content a test sets. It counts the objects
// that readers get, which is what a read of a real cache costs.
package indexed

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cache holds objects of any kinds. It implements client.Reader for the keys, the namespaces
// and the field indexes that are added first, and client.FieldIndexer.
type Cache struct {
	stores map[reflect.Type]toolscache.Indexer
	reads  atomic.Int64
}

// New returns an empty cache for the kinds of some objects.
func New(kinds ...client.Object) *Cache {
	c := &Cache{stores: map[reflect.Type]toolscache.Indexer{}}
	for _, kind := range kinds {
		c.stores[reflect.TypeOf(kind)] = toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc,
			toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	}
	return c
}

// Of returns the store of an object's kind.
func (c *Cache) Of(kind client.Object) toolscache.Indexer { return c.stores[reflect.TypeOf(kind)] }

// Reads returns how many objects readers have got.
func (c *Cache) Reads() int { return int(c.reads.Load()) }

// IndexField implements client.FieldIndexer.
func (c *Cache) IndexField(_ context.Context, kind client.Object, field string, values client.IndexerFunc) error {
	return c.Of(kind).AddIndexers(toolscache.Indexers{field: func(in any) ([]string, error) {
		obj := in.(client.Object)
		var keys []string
		for _, value := range values(obj) {
			keys = append(keys, obj.GetNamespace()+"/"+value)
		}
		return keys, nil
	}})
}

// Get implements client.Reader.
func (c *Cache) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	found, exists, err := c.Of(into).GetByKey(toolscache.ObjectName(key).String())
	if err != nil {
		return err
	}
	if !exists {
		return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", into)}, key.Name)
	}
	c.reads.Add(1)
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(found.(runtime.Object).DeepCopyObject()).Elem())
	return nil
}

// List implements client.Reader, for one namespace and at most one field.
func (c *Cache) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	items, err := meta.GetItemsPtr(list)
	if err != nil {
		return err
	}
	store := c.stores[reflect.PointerTo(reflect.TypeOf(items).Elem().Elem())]
	index, value := toolscache.NamespaceIndex, options.Namespace
	if options.FieldSelector != nil {
		field := options.FieldSelector.Requirements()[0]
		index, value = field.Field, options.Namespace+"/"+field.Value
	}
	found, err := store.ByIndex(index, value)
	if err != nil {
		return err
	}
	if options.Limit > 0 {
		found = found[:min(len(found), int(options.Limit))]
	}
	copies := make([]runtime.Object, len(found))
	for i, obj := range found {
		copies[i] = obj.(runtime.Object).DeepCopyObject()
	}
	c.reads.Add(int64(len(found)))
	return meta.SetList(list, copies)
}
