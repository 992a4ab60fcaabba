// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func child(uid, version string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version}}
}

func TestFresh(t *testing.T) {
	t.Parallel()
	f := &Fresh{}
	if f.Take(child("a", "1")) {
		t.Error("what nobody created is no news")
	}
	f.Add(child("a", "1"))
	if !f.Take(child("a", "1")) {
		t.Error("what was created here is news")
	}
	if f.Take(child("a", "1")) {
		t.Error("the same again, as after a restart of the watch, is no news")
	}
	f.Add(child("b", "1"))
	if f.Take(child("b", "2")) {
		t.Error("a child that has changed since it was created is no news")
	}
	if len(f.versions) != 0 {
		t.Errorf("%v is remembered for nobody", f.versions)
	}
	(*Fresh)(nil).Add(child("c", "1"))
	if (*Fresh)(nil).Take(child("c", "1")) {
		t.Error("nil remembers something")
	}
}

func TestFreshIsBounded(t *testing.T) {
	t.Parallel()
	f := &Fresh{}
	for i := range 2*mostFresh + 1 {
		f.Add(child(fmt.Sprint(i), "1"))
	}
	if len(f.versions) > mostFresh {
		t.Errorf("%d children are remembered", len(f.versions))
	}
	if !f.Take(child(fmt.Sprint(2*mostFresh), "1")) {
		t.Error("the latest is forgotten")
	}
}

func TestFreshChildrenAreNoNews(t *testing.T) {
	t.Parallel()
	f := &Fresh{}
	f.Add(child("a", "1"))
	news := concerns(schema.GroupKind{Group: "model.github.com", Kind: "ModelBox"}, f)
	if news.Create(event.CreateEvent{Object: child("a", "1")}) {
		t.Error("a child that was created here is told of")
	}
	if !news.Create(event.CreateEvent{Object: child("b", "1")}) {
		t.Error("a foreign object is not told of")
	}
}
