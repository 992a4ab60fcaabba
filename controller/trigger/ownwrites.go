// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OwnWrites holds the versions of objects that this process wrote until the watch delivers
// them. Such an event needs no reconcile: the reconcile that wrote the object continues with
// the API server's response, and another one would be half of the work that a write costs.
// Later events of the object pass. The zero value and nil are ready for use; nil holds
// nothing.
type OwnWrites struct {
	mu       sync.Mutex
	versions map[types.UID]string
}

// maxOwnWrites bounds the number of objects. An entry stays behind when the watch event
// comes before the API server's response does.
const maxOwnWrites = 4096

// Add adds an object as it is in the API server's response to a write.
func (o *OwnWrites) Add(obj client.Object) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.versions == nil || len(o.versions) >= maxOwnWrites {
		o.versions = map[types.UID]string{}
	}
	o.versions[obj.GetUID()] = obj.GetResourceVersion()
}

// Take reports whether an object in a watch event has the version that this process wrote,
// and removes its entry.
func (o *OwnWrites) Take(obj client.Object) bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	version, known := o.versions[obj.GetUID()]
	delete(o.versions, obj.GetUID())
	return known && version == obj.GetResourceVersion()
}
