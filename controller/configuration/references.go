// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// set sets what an owner refers to, and forgets the data of what it does not refer to any more. It
// is read again for another owner that does.
func (s *Sources) set(owner types.NamespacedName, refs []workload.Reference) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refs == nil {
		s.refs, s.known, s.changes = map[string]map[string][]workload.Reference{}, map[subject]known{}, map[types.NamespacedName]change{}
	}
	for ref := range sets.New(s.refs[owner.Namespace][owner.Name]...).Difference(sets.New(refs...)) {
		delete(s.known, subject{ref, owner.Namespace})
	}
	all := s.refs[owner.Namespace]
	if all == nil {
		all = map[string][]workload.Reference{}
		s.refs[owner.Namespace] = all
	}
	if all[owner.Name] = refs; len(refs) == 0 {
		delete(all, owner.Name)
		delete(s.changes, owner)
	}
	if len(all) == 0 {
		delete(s.refs, owner.Namespace)
	}
}

// Forget removes what is held of an owner that was deleted, or does not ask any more.
func (s *Sources) Forget(owner types.NamespacedName) {
	if s != nil {
		s.set(owner, nil)
	}
}

// ownersOf returns the owners that refer to an object.
func (s *Sources) ownersOf(kind, namespace, name string) (owners []types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for owner, refs := range s.refs[namespace] {
		if slices.Contains(refs, workload.Reference{Kind: kind, Name: name}) {
			owners = append(owners, types.NamespacedName{Namespace: namespace, Name: owner})
		}
	}
	return owners
}
