// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Observer sees every version of the objects that it watches, on watches of its own
// that no fault meets. It counts what happens to them, and is the garbage collector
// that a control plane of tests does not have: it deletes what names an owner that is
// gone.
type Observer struct {
	client client.WithWatch

	mu      sync.Mutex
	err     error
	objects map[types.UID]client.Object
	// born and gone are the resourceVersions at which objects were created and deleted.
	born, gone map[types.UID]uint64
	// tallies and orphans are by namespace.
	tallies map[string]map[string]int
	orphans map[string][]string
}

// Observe watches the kinds of lists until ctx ends.
func Observe(ctx context.Context, c client.WithWatch, lists ...client.ObjectList) (*Observer, error) {
	o := &Observer{
		client: c, objects: map[types.UID]client.Object{}, born: map[types.UID]uint64{}, gone: map[types.UID]uint64{},
		tallies: map[string]map[string]int{}, orphans: map[string][]string{},
	}
	for _, list := range lists {
		if err := c.List(ctx, list, client.Limit(1)); err != nil {
			return nil, fmt.Errorf("observing %T: %w", list, err)
		}
		// An API server ends the watches of clients that are slow; this one misses nothing.
		watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), versions{c, list})
		if err != nil {
			return nil, fmt.Errorf("observing %T: %w", list, err)
		}
		go o.follow(ctx, watcher)
	}
	return o, nil
}

// versions watches one kind from a version on.
type versions struct {
	client client.WithWatch
	list   client.ObjectList
}

func (v versions) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return v.client.Watch(ctx, v.list.DeepCopyObject().(client.ObjectList), &client.ListOptions{Raw: &options})
}

func (o *Observer) follow(ctx context.Context, watcher watch.Interface) {
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		obj, ok := event.Object.(client.Object)
		if !ok || event.Type == watch.Error {
			o.blind(fmt.Errorf("a watch ended with %+v", event.Object))
			continue
		}
		for _, orphan := range o.saw(event.Type, obj) {
			go o.collect(ctx, orphan)
		}
	}
}

// blind notes that versions may have been missed.
func (o *Observer) blind(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = errors.Join(o.err, err)
}

// Err is why the observer may have missed something.
func (o *Observer) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// Tally is how often each thing happened in a namespace: "create Deployment box",
// "delete Service box", "rollout Deployment box" for a change of its pod template,
// "scale Deployment box" for one of its replica count.
func (o *Observer) Tally(namespace string) map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.tallies[namespace])
}

// Orphans are the objects of a namespace that were created for an owner that had been
// deleted before.
func (o *Observer) Orphans(namespace string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.orphans[namespace]...)
}

// saw takes one event, and returns what is to be collected because of it.
func (o *Observer) saw(event watch.EventType, obj client.Object) []client.Object {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.objects[obj.GetUID()]
	switch event {
	case watch.Deleted:
		o.count(obj, "delete")
		o.gone[obj.GetUID()] = version(obj)
		delete(o.objects, obj.GetUID())
		return o.orphanedBy(obj.GetUID())
	case watch.Added, watch.Modified:
		o.objects[obj.GetUID()] = obj
	default:
		return nil
	}
	if before == nil {
		o.count(obj, "create")
		o.born[obj.GetUID()] = version(obj)
		return o.added(obj)
	}
	o.changed(before, obj)
	return nil
}

// added returns the object itself if its owner is gone already.
func (o *Observer) added(obj client.Object) []client.Object {
	for _, owner := range obj.GetOwnerReferences() {
		if gone, dead := o.gone[owner.UID]; dead {
			o.orphan(obj, gone)
			return []client.Object{obj}
		}
	}
	return nil
}

// orphanedBy are the objects of an owner that is gone.
func (o *Observer) orphanedBy(uid types.UID) []client.Object {
	var orphaned []client.Object
	for _, obj := range o.objects {
		for _, owner := range obj.GetOwnerReferences() {
			if owner.UID == uid {
				// The two watches are two streams: it may be newer than its owner's end.
				o.orphan(obj, o.gone[uid])
				orphaned = append(orphaned, obj)
			}
		}
	}
	return orphaned
}

// orphan notes an object that was created after its owner was deleted. Versions of
// different kinds are comparable: they are all the revision of one etcd.
func (o *Observer) orphan(obj client.Object, gone uint64) {
	if o.born[obj.GetUID()] > gone {
		o.orphans[obj.GetNamespace()] = append(o.orphans[obj.GetNamespace()], kindOf(obj)+" "+obj.GetName())
	}
}

// changed counts what a new version of an object changes.
func (o *Observer) changed(before, after client.Object) {
	was, wasScale := podsOf(before)
	is, isScale := podsOf(after)
	if is != nil && !equality.Semantic.DeepEqual(was, is) {
		o.count(after, "rollout")
	}
	if wasScale != isScale {
		o.count(after, "scale")
	}
}

func podsOf(obj client.Object) (*corev1.PodTemplateSpec, int32) {
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		return &obj.Spec.Template, ptr.Deref(obj.Spec.Replicas, 1)
	case *appsv1.DaemonSet:
		return &obj.Spec.Template, 0
	}
	return nil, 0
}

func (o *Observer) count(obj client.Object, what string) {
	tally := o.tallies[obj.GetNamespace()]
	if tally == nil {
		tally = map[string]int{}
		o.tallies[obj.GetNamespace()] = tally
	}
	tally[what+" "+kindOf(obj)+" "+obj.GetName()]++
}

// collect deletes an object whose owner is gone.
func (o *Observer) collect(ctx context.Context, orphan client.Object) {
	uid := orphan.GetUID()
	err := o.client.Delete(ctx, orphan, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	// One that is gone already, or was replaced, is as it should be.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && ctx.Err() == nil {
		o.blind(fmt.Errorf("collecting %s %q: %w", kindOf(orphan), orphan.GetName(), err))
	}
}

// version is an object's resourceVersion as a number.
func version(obj client.Object) uint64 {
	number, _ := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	return number
}

func kindOf(obj client.Object) string { return reflect.TypeOf(obj).Elem().Name() }
