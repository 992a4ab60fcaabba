// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

func child(uid, version string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version}}
}

func TestOwnWrites(t *testing.T) {
	t.Parallel()
	own := &OwnWrites{}
	if own.Take(child("a", "1")) {
		t.Error("an object that was not written here is taken for an own write")
	}
	own.Add(child("a", "1"))
	if !own.Take(child("a", "1")) {
		t.Error("an object that was created here is not taken for an own write")
	}
	if own.Take(child("a", "1")) {
		t.Error("the same version, sent again after a restart of the watch, is taken for an own write")
	}
	own.Add(child("b", "1"))
	if own.Take(child("b", "2")) {
		t.Error("a child that has changed since it was created is taken for an own write")
	}
	if len(own.versions) != 0 {
		t.Errorf("%v stays", own.versions)
	}
	(*OwnWrites)(nil).Add(child("c", "1"))
	if (*OwnWrites)(nil).Take(child("c", "1")) {
		t.Error("nil holds something")
	}
}

func TestOwnWritesAreBounded(t *testing.T) {
	t.Parallel()
	own := &OwnWrites{}
	for i := range 2*maxOwnWrites + 1 {
		own.Add(child(fmt.Sprint(i), "1"))
	}
	if len(own.versions) > maxOwnWrites {
		t.Errorf("it holds %d objects", len(own.versions))
	}
	if !own.Take(child(fmt.Sprint(2*maxOwnWrites), "1")) {
		t.Error("the latest object is lost")
	}
}

func TestChildChangedIgnoresOwnCreations(t *testing.T) {
	t.Parallel()
	own := &OwnWrites{}
	own.Add(child("a", "1"))
	filter := childChanged(schema.GroupKind{Group: "model.github.com", Kind: "ModelBox"}, own)
	if filter.Create(event.CreateEvent{Object: child("a", "1")}) {
		t.Error("the creation of a child by this process passes")
	}
	if !filter.Create(event.CreateEvent{Object: child("b", "1")}) {
		t.Error("the creation of a foreign object does not pass")
	}
}

// A write by this process is taken for an own write once.
func TestUpdatedByOthers(t *testing.T) {
	t.Parallel()
	own := &OwnWrites{}
	own.Add(child("a", "7"))
	own.Add(child("b", "8"))
	update := func(filter predicate.Funcs, before, after *corev1.Service) bool {
		return filter.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	filter := updatedByOthers(own)
	for _, test := range []struct {
		name          string
		before, after *corev1.Service
		passes        bool
	}{
		{"a resync", child("a", "5"), child("a", "5"), false},
		{"an own write", child("a", "5"), child("a", "7"), false},
		{"the update after it", child("a", "7"), child("a", "9"), true},
		{"an update that contains an own write and a later one", child("b", "5"), child("b", "10"), true},
		{"an object that was not written here", child("c", "5"), child("c", "7"), true},
	} {
		if got := update(filter, test.before, test.after); got != test.passes {
			t.Errorf("%s: passes is %t", test.name, got)
		}
	}
	if !update(updatedByOthers(nil), child("a", "5"), child("a", "7")) {
		t.Error("without own writes, an update is taken for one")
	}
}
