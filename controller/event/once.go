// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Once remembers the last event of each object, so that a reconcile that is repeated, because
// the status could not be written, does not emit it again. The zero value is ready for use.
type Once[K comparable] struct {
	mu   sync.Mutex
	last map[types.UID]K
}

// First reports whether the event with a key is not the last one of the object.
func (o *Once[K]) First(object types.UID, key K) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if last, known := o.last[object]; known && last == key {
		return false
	}
	if o.last == nil || len(o.last) >= maxObjects {
		o.last = map[types.UID]K{}
	}
	o.last[object] = key
	return true
}
