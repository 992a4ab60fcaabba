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

// Observer watches objects without faults and receives every version of them. It counts
// their changes. It is also the garbage collector, which a control plane for tests does
// not have: it deletes objects whose owner was deleted.
type Observer struct {
	client client.WithWatch

	mu      sync.Mutex
	err     error
	objects map[types.UID]client.Object
	// created and deleted hold the resourceVersions at which objects were created and
	// deleted.
	created, deleted map[types.UID]uint64
	// counts and orphans are by namespace.
	counts  map[string]map[string]int
	orphans map[string][]string
}

// Observe watches the kinds of lists until ctx ends.
func Observe(ctx context.Context, c client.WithWatch, lists ...client.ObjectList) (*Observer, error) {
	o := &Observer{
		client: c, objects: map[types.UID]client.Object{}, created: map[types.UID]uint64{}, deleted: map[types.UID]uint64{},
		counts: map[string]map[string]int{}, orphans: map[string][]string{},
	}
	for _, list := range lists {
		if err := c.List(ctx, list, client.Limit(1)); err != nil {
			return nil, fmt.Errorf("observing %T: %w", list, err)
		}
		// An API server ends the watches of slow clients; a retry watcher then continues
		// without missing a version.
		watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), versions{c, list})
		if err != nil {
			return nil, fmt.Errorf("observing %T: %w", list, err)
		}
		go o.follow(ctx, watcher)
	}
	return o, nil
}

// versions watches one kind from a resourceVersion on.
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
			o.fail(fmt.Errorf("a watch ended with %+v", event.Object))
			continue
		}
		for _, orphan := range o.handle(event.Type, obj) {
			go o.collect(ctx, orphan)
		}
	}
}

// fail records an error after which versions may be missing.
func (o *Observer) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = errors.Join(o.err, err)
}

// Err returns the error after which the observer may have missed versions.
func (o *Observer) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// Counts returns how often each change happened in a namespace: "create Deployment box",
// "delete Service box", "rollout Deployment box" for a change of the pod template, and
// "scale Deployment box" for a change of the replicas.
func (o *Observer) Counts(namespace string) map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.counts[namespace])
}

// Orphans returns the objects of a namespace that were created after their owner was
// deleted.
func (o *Observer) Orphans(namespace string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.orphans[namespace]...)
}

// handle handles one watch event, and returns the objects that must be deleted because
// their owner was deleted.
func (o *Observer) handle(event watch.EventType, obj client.Object) []client.Object {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.objects[obj.GetUID()]
	switch event {
	case watch.Deleted:
		o.count(obj, "delete")
		o.deleted[obj.GetUID()] = version(obj)
		delete(o.objects, obj.GetUID())
		return o.orphanedBy(obj.GetUID())
	case watch.Added, watch.Modified:
		o.objects[obj.GetUID()] = obj
	default:
		return nil
	}
	if before == nil {
		o.count(obj, "create")
		o.created[obj.GetUID()] = version(obj)
		return o.added(obj)
	}
	o.changed(before, obj)
	return nil
}

// added returns the object itself if its owner was deleted before.
func (o *Observer) added(obj client.Object) []client.Object {
	for _, owner := range obj.GetOwnerReferences() {
		if at, deleted := o.deleted[owner.UID]; deleted {
			o.orphan(obj, at)
			return []client.Object{obj}
		}
	}
	return nil
}

// orphanedBy returns the objects of an owner that was deleted.
func (o *Observer) orphanedBy(uid types.UID) []client.Object {
	var orphaned []client.Object
	for _, obj := range o.objects {
		for _, owner := range obj.GetOwnerReferences() {
			if owner.UID == uid {
				// Owner and object have different watches, so the object may have been
				// created after the deletion of its owner.
				o.orphan(obj, o.deleted[uid])
				orphaned = append(orphaned, obj)
			}
		}
	}
	return orphaned
}

// orphan records an object that was created after its owner was deleted. The
// resourceVersions of different kinds are comparable, because they are revisions of the
// same etcd.
func (o *Observer) orphan(obj client.Object, ownerDeleted uint64) {
	if o.created[obj.GetUID()] > ownerDeleted {
		o.orphans[obj.GetNamespace()] = append(o.orphans[obj.GetNamespace()], kindOf(obj)+" "+obj.GetName())
	}
}

// changed counts the changes between two versions of an object.
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
	counts := o.counts[obj.GetNamespace()]
	if counts == nil {
		counts = map[string]int{}
		o.counts[obj.GetNamespace()] = counts
	}
	counts[what+" "+kindOf(obj)+" "+obj.GetName()]++
}

// collect deletes an object whose owner was deleted.
func (o *Observer) collect(ctx context.Context, orphan client.Object) {
	uid := orphan.GetUID()
	err := o.client.Delete(ctx, orphan, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	// It is not an error if the object was already deleted or replaced.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && ctx.Err() == nil {
		o.fail(fmt.Errorf("collecting %s %q: %w", kindOf(orphan), orphan.GetName(), err))
	}
}

// version returns an object's resourceVersion as a number.
func version(obj client.Object) uint64 {
	number, _ := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	return number
}

func kindOf(obj client.Object) string { return reflect.TypeOf(obj).Elem().Name() }
