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

	"github.com/modelbox-operator/modelbox-operator/bench/plane"
)

// The resources that are watched.
var (
	Deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	Services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	ModelBoxes  = schema.GroupVersionResource{Group: "model.github.com", Version: "v1", Resource: "modelboxes"}
	Erus        = schema.GroupVersionResource{Group: "mtsre.meitu.com", Version: "v1", Resource: "erus"}
)

// Tally notes when each object of a resource was first seen to be as it should.
type Tally struct {
	mu    sync.Mutex
	seen  map[string]time.Time
	first func(at time.Time)
	last  time.Time
	err   error
}

// Counts decides whether an object, as it is now, counts.
type Counts func(obj *metav1.PartialObjectMetadata) bool

// Exists counts every object.
func Exists(*metav1.PartialObjectMetadata) bool { return true }

// HasStatus counts objects whose status somebody has written.
func HasStatus(obj *metav1.PartialObjectMetadata) bool {
	for _, entry := range obj.ManagedFields {
		if entry.Subresource == "status" {
			return true
		}
	}
	return false
}

// Changed counts objects whose spec was changed after they were made.
func Changed(obj *metav1.PartialObjectMetadata) bool { return obj.Generation > 1 }

// Watch tallies, from now on, the changes of a resource. The watch is nobody's but
// the harness's own, and sees metadata only, so that it costs the API server
// little, and the same for every contestant. first, if not nil, is called at the
// first change of all.
func Watch(ctx context.Context, p *plane.Plane, resource schema.GroupVersionResource, counts Counts, first func(time.Time)) (*Tally, error) {
	clients, err := metadata.NewForConfig(p.Config)
	if err != nil {
		return nil, err
	}
	of := clients.Resource(resource).Namespace(plane.Namespace)
	list, err := of.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", resource.Resource, err)
	}
	// The API server ends the watches of a CRD's objects when it takes up a change of
	// the CRD, such as that of its status soon after it was made.
	stream, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{WatchFuncWithContext: of.Watch})
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", resource.Resource, err)
	}
	t := &Tally{seen: map[string]time.Time{}, first: first}
	go t.follow(ctx, stream, resource, counts)
	return t, nil
}

func (t *Tally) follow(ctx context.Context, stream watch.Interface, resource schema.GroupVersionResource, counts Counts) {
	defer stream.Stop()
	for event := range stream.ResultChan() {
		obj, ok := event.Object.(*metav1.PartialObjectMetadata)
		if !ok {
			t.fail(fmt.Errorf("the watch of %s failed: %v", resource.Resource, event.Object))
			return
		}
		if event.Type == watch.Added || event.Type == watch.Modified {
			t.note(obj, counts, time.Now())
		}
	}
	if ctx.Err() == nil {
		t.fail(fmt.Errorf("the watch of %s ended", resource.Resource))
	}
}

func (t *Tally) note(obj *metav1.PartialObjectMetadata, counts Counts, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.first != nil {
		t.first(now)
		t.first = nil
	}
	if _, known := t.seen[obj.Name]; known || !counts(obj) {
		return
	}
	t.seen[obj.Name] = now
	t.last = now
}

func (t *Tally) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
}

// Len is how many objects have counted.
func (t *Tally) Len() (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.seen), t.err
}

// Last is when the last of them did.
func (t *Tally) Last() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// At is when an object first counted, the zero time if it has not.
func (t *Tally) At(name string) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen[name]
}

// First is when the first of them did.
func (t *Tally) First() time.Time {
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

// Await waits until so many objects have counted in each tally, as long as alive
// has no error.
func Await(ctx context.Context, n int, within time.Duration, alive func() error, tallies ...*Tally) error {
	what := fmt.Sprintf("waiting for %d objects of each of %d sorts", n, len(tallies))
	err := plane.Poll(ctx, 10*time.Millisecond, within, what, func() (bool, error) {
		if err := alive(); err != nil {
			return false, err
		}
		for _, t := range tallies {
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
	for _, t := range tallies {
		k, _ := t.Len()
		have = append(have, k)
	}
	return fmt.Errorf("%w (there are %v)", err, have)
}
