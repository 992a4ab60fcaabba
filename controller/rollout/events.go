// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"math"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/controller/event"
)

// The reasons of the events.
const (
	ReasonBegun     = "RolloutBegun"
	ReasonCompleted = "RolloutCompleted"
)

// maxOwners bounds the memory of Events. If it is full, owners without a rollout are forgotten,
// and all of them if there are none. The next rollout of such an owner is noticed all the same,
// by its progress.
const maxOwners = 4096

// Events emits the events of the rollouts of one kind of owners. The zero value emits none.
type Events struct {
	recorder events.EventRecorder
	// kind is that of the owners, child that of their children.
	kind  schema.GroupVersionKind
	child string

	mu     sync.Mutex
	owners map[types.UID]state
	limit  event.Limit
}

// NewEvents returns Events for owners of a kind. child is the kind of their children, such as
// Deployment.
func NewEvents(recorder events.EventRecorder, kind schema.GroupVersionKind, child string) *Events {
	return &Events{recorder: recorder, kind: kind, child: child, owners: map[types.UID]state{}}
}

// Observe emits the events that follow from an observation. The begins of one owner are limited:
// see event.Limit. A rollout whose begin the limit does not allow has no events, unless it lasts
// until the limit allows another one.
func (e *Events) Observe(owner client.Object, o Observation, now time.Time) {
	if e == nil || e.recorder == nil {
		return
	}
	begun, duration, completed := e.observe(owner.GetUID(), o, now)
	if begun {
		// Without resourceVersion, so that repeated begins are counted in one event.
		e.recorder.Eventf(e.reference(owner), nil, corev1.EventTypeNormal, ReasonBegun, "Rollout", "%s %q: a rollout has begun", e.child, owner.GetName())
	}
	if completed {
		e.recorder.Eventf(owner, nil, corev1.EventTypeNormal, ReasonCompleted, "Rollout",
			"%s %q: the rollout was completed in %s", e.child, owner.GetName(), seconds(duration))
	}
}

// observe updates the state of an owner, and returns which events are to be emitted.
func (e *Events) observe(owner types.UID, o Observation, now time.Time) (begun bool, duration time.Duration, completed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, known := e.owners[owner]
	if known {
		s = s.next(o, now)
	} else {
		s = first(o, now)
	}
	if s.unannounced && e.limit.Allow(owner, now) {
		s.unannounced, begun = false, true
	}
	if o.Complete {
		announced := !s.unannounced
		s, duration, completed = s.complete(o, now)
		completed = completed && announced
	}
	e.set(owner, s)
	return begun, duration, completed
}

func (e *Events) set(owner types.UID, s state) {
	if _, known := e.owners[owner]; !known && len(e.owners) >= maxOwners {
		e.forget()
	}
	e.owners[owner] = s
}

func (e *Events) forget() {
	for owner, s := range e.owners {
		if s.begun.IsZero() {
			delete(e.owners, owner)
		}
	}
	if len(e.owners) >= maxOwners {
		clear(e.owners)
	}
}

func (e *Events) reference(owner client.Object) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: e.kind.GroupVersion().String(), Kind: e.kind.Kind,
		Namespace: owner.GetNamespace(), Name: owner.GetName(), UID: owner.GetUID(),
	}
}

// seconds returns a duration in whole seconds, such as "95s".
func seconds(d time.Duration) string { return fmt.Sprintf("%.0fs", math.Round(max(d, 0).Seconds())) }
