// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/modelbox-operator/modelbox-operator/controller/apply"
)

// A restart that was written here is no news, and is so once.
func TestAnOwnRestartIsNoNews(t *testing.T) {
	t.Parallel()
	at := func(uid types.UID, version string) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: version}}
	}
	r := &Reconciler{Fresh: &apply.Fresh{}}
	r.Fresh.Add(at("a", "7"))
	r.Fresh.Add(at("b", "8"))
	for _, test := range []struct {
		name    string
		old, is *appsv1.Deployment
		news    bool
	}{
		{"a resync", at("a", "5"), at("a", "5"), false},
		{"our restart", at("a", "5"), at("a", "7"), false},
		{"its rollout", at("a", "7"), at("a", "9"), true},
		{"what was made of our restart before it was seen", at("b", "5"), at("b", "10"), true},
		{"somebody else's Deployment", at("c", "5"), at("c", "7"), true},
	} {
		if got := r.news(event.UpdateEvent{ObjectOld: test.old, ObjectNew: test.is}); got != test.news {
			t.Errorf("%s: news is %t", test.name, got)
		}
	}
	if !(&Reconciler{}).news(event.UpdateEvent{ObjectOld: at("a", "5"), ObjectNew: at("a", "7")}) {
		t.Error("a reconciler that remembers nothing takes a change for its own")
	}
}
