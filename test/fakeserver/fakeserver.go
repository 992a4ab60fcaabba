// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakeserver is a fake API server for tests of what is written exactly once. It has one object of each type. It is a
// hundred times as fast as controller-runtime's fake client, and has what is important here: optimistic locking, and a
// generation that changes with the spec. Its clients have a cache that may be behind, and writes that may fail.
package fakeserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"sync"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Server is the server. Its clients may be used concurrently.
type Server struct {
	// Written is called for each write of a client that changes an object. subresource is "" for the object itself.
	Written func(subresource string, before, after client.Object)

	mu      sync.Mutex
	version int
	objects map[reflect.Type]client.Object
}

// Store stores an object as another client does, as it is but for its resourceVersion, in the place of that of its type.
func (s *Server) Store(obj client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(obj)
}

func (s *Server) store(obj client.Object) {
	if s.objects == nil {
		s.objects = map[reflect.Type]client.Object{}
	}
	s.version++
	obj.SetResourceVersion(strconv.Itoa(s.version))
	s.objects[reflect.TypeOf(obj)] = obj
}

// Version returns how many writes there were.
func (s *Server) Version() int { return s.version }

// Stored returns the object of a type, nil if there is none. It does not lock: it is for Written, and for when no client writes.
func Stored[T client.Object](s *Server) (obj T) {
	obj, _ = s.objects[reflect.TypeFor[T]()].(T)
	return obj
}

// Delete deletes the object of a type.
func Delete[T client.Object](s *Server) { delete(s.objects, reflect.TypeFor[T]()) }

// Change changes the spec of an object as another client does, if there is one.
func Change[T client.Object](s *Server, how func(T)) {
	if before, found := s.objects[reflect.TypeFor[T]()]; found {
		after := before.DeepCopyObject().(T)
		after.SetGeneration(after.GetGeneration() + 1)
		how(after)
		s.Store(after)
	}
}

// patch applies a JSON patch if it is a list, else a merge patch, and returns the resourceVersion. The number of replicas of a
// scale is at the same path as that of the object.
func (s *Server) patch(of client.Object, subresource string, patch []byte) (version string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, found := s.objects[reflect.TypeOf(of)]
	if !found {
		return "", apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", of)}, of.GetName())
	}
	doc, err := json.Marshal(before)
	if err == nil {
		doc, err = patched(doc, patch)
	}
	after := reflect.New(reflect.TypeOf(of).Elem()).Interface().(client.Object)
	if err == nil {
		err = json.Unmarshal(doc, after)
	}
	switch {
	case err != nil:
		return "", err
	case after.GetResourceVersion() != before.GetResourceVersion() || after.GetUID() != before.GetUID():
		return "", apierrors.NewConflict(schema.GroupResource{Resource: fmt.Sprintf("%T", of)}, of.GetName(), errors.New("the object has been modified"))
	case reflect.DeepEqual(before, after):
		return before.GetResourceVersion(), nil
	}
	if subresource != "status" {
		after.SetGeneration(after.GetGeneration() + 1)
	}
	s.Written(subresource, before, after)
	s.store(after)
	return after.GetResourceVersion(), nil
}

func patched(doc, patch []byte) ([]byte, error) {
	if patch[0] != '[' {
		return jsonpatch.MergePatch(doc, patch)
	}
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	return operations.Apply(doc)
}

// Client is the client of one controller. It reads from a cache that Sync updates.
type Client struct {
	client.Client // Nil: nothing else is called.
	Server        *Server
	// Write is called for each write, and decides whether and when to do it.
	Write func(do func() error) error
	// Lists fills the lists that are read. Nil leaves them empty.
	Lists func(client.ObjectList)

	cache map[reflect.Type]client.Object
}

// Sync updates the object of a type in the cache.
func Sync[T client.Object](c *Client) {
	c.Server.mu.Lock()
	defer c.Server.mu.Unlock()
	if c.cache == nil {
		c.cache = map[reflect.Type]client.Object{}
	}
	c.cache[reflect.TypeFor[T]()] = c.Server.objects[reflect.TypeFor[T]()]
}

// Get implements client.Reader.
func (c *Client) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	cached := c.cache[reflect.TypeOf(into)]
	if cached == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", into)}, key.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(cached.DeepCopyObject()).Elem())
	return nil
}

// List implements client.Reader.
func (c *Client) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if c.Lists != nil {
		c.Lists(into)
	}
	return nil
}

// Patch implements client.Writer.
func (c *Client) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return c.patch(obj, "", patch)
}

func (c *Client) patch(obj client.Object, subresource string, patch client.Patch) error {
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	return c.Write(func() error {
		version, err := c.Server.patch(obj, subresource, data)
		if err == nil && subresource == "status" {
			obj.SetResourceVersion(version)
		}
		return err
	})
}

// Status implements client.StatusClient.
func (c *Client) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements client.SubResourceClientConstructor.
func (c *Client) SubResource(name string) client.SubResourceClient {
	return &subResource{client: c, name: name}
}

type subResource struct {
	client.SubResourceClient // Nil: nothing else is called.
	client                   *Client
	name                     string
}

// Patch implements client.SubResourceWriter.
func (s *subResource) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.client.patch(obj, s.name, patch)
}

// ErrCut is the error of a write of which it is not known whether it has happened, and of a process that has died.
var ErrCut = errors.New("the connection was cut")

type crash struct{}

// Fail does a write, or not: of a hundred, so many are not sent, lose their response, and are the last that the process
// does before and after it dies.
func Fail(rnd *rand.Rand, percent int, do func() error) error {
	switch fate := rnd.IntN(100); {
	case fate < percent:
		return ErrCut
	case fate < 2*percent:
		panic(crash{})
	case fate < 3*percent:
		_ = do()
		return ErrCut
	case fate < 4*percent:
		_ = do()
		panic(crash{})
	}
	return do()
}

// Reconcile reconciles an object with a process that may die.
func Reconcile(ctx context.Context, r reconcile.Reconciler, key client.ObjectKey) (result reconcile.Result, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			if _, ok := cause.(crash); !ok {
				panic(cause)
			}
			err = ErrCut
		}
	}()
	return r.Reconcile(ctx, reconcile.Request{NamespacedName: key})
}

// Scenario is a set of random faults and changes.
type Scenario struct {
	Name string
	// Leaders is how many controllers reconcile, without leader election.
	Leaders int
	// Crashes end a reconcile before or after any write, fail a write, or lose the response to one; there are downtimes.
	Crashes bool
	// Stale makes caches stale, also after the controller's own writes.
	Stale bool
	// Jumps sets the clock forward and back.
	Jumps bool
	// Users and Edits are changes of the objects, and of the spec that is reconciled. Windows has it wait.
	Users, Edits, Windows bool
}

// Scenarios are those of each kind.
var Scenarios = []Scenario{
	{Name: "none", Leaders: 1},
	{Name: "users", Leaders: 1, Users: true},
	{Name: "crashes", Leaders: 1, Crashes: true},
	{Name: "crashes and users", Leaders: 1, Crashes: true, Users: true},
	{Name: "a jumping clock", Leaders: 1, Crashes: true, Jumps: true},
	{Name: "stale caches", Leaders: 1, Crashes: true, Stale: true, Users: true},
	{Name: "two leaders", Leaders: 2, Crashes: true, Stale: true},
	{Name: "all", Leaders: 2, Crashes: true, Stale: true, Jumps: true, Users: true, Edits: true},
}
