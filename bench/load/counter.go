// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/modelbox-operator/modelbox-operator/bench/controlplane"
)

// The resources that are watched.
var (
	Deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	Services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	ModelBoxes  = schema.GroupVersionResource{Group: "model.github.com", Version: "v1", Resource: "modelboxes"}
	Erus        = schema.GroupVersionResource{Group: "mtsre.meitu.com", Version: "v1", Resource: "erus"}
)

// Counter records when each object of a resource first matched a predicate.
type Counter struct {
	mu    sync.Mutex
	seen  map[string]time.Time
	first func(at time.Time)
	last  time.Time
	err   error
}

// Predicate reports whether an object, in its current state, counts.
type Predicate func(obj *metav1.PartialObjectMetadata) bool

// Exists matches every object.
func Exists(*metav1.PartialObjectMetadata) bool { return true }

// HasStatus matches objects whose status was written.
func HasStatus(obj *metav1.PartialObjectMetadata) bool {
	for _, entry := range obj.ManagedFields {
		if entry.Subresource == "status" {
			return true
		}
	}
	return false
}

// Changed matches objects whose spec was changed after their creation.
func Changed(obj *metav1.PartialObjectMetadata) bool { return obj.Generation > 1 }

// Watch starts to count the objects of a resource that match a predicate. The watch
// belongs to the benchmark and not to an implementation. It receives only metadata, so
// its cost for the API server is small, and the same for every implementation. first,
// if not nil, is called at the first change of any object.
func Watch(ctx context.Context, p *controlplane.ControlPlane, resource schema.GroupVersionResource, matches Predicate, first func(time.Time)) (*Counter, error) {
	clients, err := metadata.NewForConfig(p.Config)
	if err != nil {
		return nil, err
	}
	of := clients.Resource(resource).Namespace(controlplane.Namespace)
	list, err := of.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", resource.Resource, err)
	}
	// The API server closes the watches of custom resources when their CRD changes,
	// for example when the CRD's status is written after its creation.
	stream, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{WatchFuncWithContext: of.Watch})
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", resource.Resource, err)
	}
	t := &Counter{seen: map[string]time.Time{}, first: first}
	go t.follow(ctx, stream, resource, matches)
	return t, nil
}

func (t *Counter) follow(ctx context.Context, stream watch.Interface, resource schema.GroupVersionResource, matches Predicate) {
	defer stream.Stop()
	for event := range stream.ResultChan() {
		obj, ok := event.Object.(*metav1.PartialObjectMetadata)
		if !ok {
			t.fail(fmt.Errorf("the watch of %s failed: %v", resource.Resource, event.Object))
			return
		}
		if event.Type == watch.Added || event.Type == watch.Modified {
			t.record(obj, matches, time.Now())
		}
	}
	if ctx.Err() == nil {
		t.fail(fmt.Errorf("the watch of %s ended", resource.Resource))
	}
}

func (t *Counter) record(obj *metav1.PartialObjectMetadata, matches Predicate, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.first != nil {
		t.first(now)
		t.first = nil
	}
	if _, known := t.seen[obj.Name]; known || !matches(obj) {
		return
	}
	t.seen[obj.Name] = now
	t.last = now
}

func (t *Counter) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
}

// Len returns how many objects have matched.
func (t *Counter) Len() (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.seen), t.err
}

// Last returns when the last object matched.
func (t *Counter) Last() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// At returns when an object first matched, or the zero time if it has not.
func (t *Counter) At(name string) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen[name]
}

// First returns when the first object matched.
func (t *Counter) First() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	var first time.Time
	for _, at := range t.seen {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// Await waits until each counter has n objects. It fails as soon as alive returns an
// error.
func Await(ctx context.Context, n int, within time.Duration, alive func() error, counters ...*Counter) error {
	what := fmt.Sprintf("waiting for %d objects of each of %d resources", n, len(counters))
	err := controlplane.Poll(ctx, 10*time.Millisecond, within, what, func() (bool, error) {
		if err := alive(); err != nil {
			return false, err
		}
		for _, t := range counters {
			if have, err := t.Len(); err != nil || have < n {
				return false, err
			}
		}
		return true, nil
	})
	if err == nil {
		return nil
	}
	var have []int
	for _, t := range counters {
		k, _ := t.Len()
		have = append(have, k)
	}
	return fmt.Errorf("%w (counted so far: %v)", err, have)
}
