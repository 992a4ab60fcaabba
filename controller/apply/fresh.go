// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Fresh remembers the children that this process created until the watch tells of
// them. That news is none: whoever created a child goes on with the API server's
// answer, and reconciling its owner again for it would be half of the work that a
// new object costs. What a child becomes after that is news as ever. The zero value
// and nil are ready for use; nil remembers nothing.
type Fresh struct {
	mu       sync.Mutex
	versions map[types.UID]string
}

// mostFresh bounds what is remembered of children whose news came before the API
// server's answer did, and which nobody will ask for.
const mostFresh = 4096

// add remembers a child as the API server answered with it.
func (f *Fresh) add(child client.Object) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.versions == nil || len(f.versions) >= mostFresh {
		f.versions = map[types.UID]string{}
	}
	f.versions[child.GetUID()] = child.GetResourceVersion()
}

// take says whether a child that a watch tells of is just what was created here, and
// forgets it.
func (f *Fresh) take(child client.Object) bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	version, known := f.versions[child.GetUID()]
	delete(f.versions, child.GetUID())
	return known && version == child.GetResourceVersion()
}
