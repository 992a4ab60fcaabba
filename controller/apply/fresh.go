// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Fresh remembers what this process wrote until the watch tells of it. That news is
// none: whoever wrote goes on with the API server's answer, and reconciling again for
// it would be half of the work that a write costs. What becomes of the object after
// that is news as ever. The zero value and nil are ready for use; nil remembers nothing.
type Fresh struct {
	mu       sync.Mutex
	versions map[types.UID]string
}

// mostFresh bounds what is remembered of objects whose news came before the API
// server's answer did, and which nobody will ask for.
const mostFresh = 4096

// Add remembers an object as the API server answered with it.
func (f *Fresh) Add(obj client.Object) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.versions == nil || len(f.versions) >= mostFresh {
		f.versions = map[types.UID]string{}
	}
	f.versions[obj.GetUID()] = obj.GetResourceVersion()
}

// Take says whether an object that a watch tells of is just what was written here, and
// forgets it.
func (f *Fresh) Take(obj client.Object) bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	version, known := f.versions[obj.GetUID()]
	delete(f.versions, obj.GetUID())
	return known && version == obj.GetResourceVersion()
}
