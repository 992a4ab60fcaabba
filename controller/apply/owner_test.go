// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

func reference(kind, name string, uid types.UID) metav1.OwnerReference {
	return referenceTo(schema.GroupVersionKind{Group: "model.github.com", Version: "v1", Kind: kind}, name, uid)
}

func referenceTo(kind schema.GroupVersionKind, name string, uid types.UID) metav1.OwnerReference {
	return *metav1.NewControllerRef(&metav1.ObjectMeta{Name: name, UID: uid}, kind)
}

func TestCheckOwner(t *testing.T) {
	now := metav1.Now()
	for _, test := range []struct {
		name     string
		refs     []metav1.OwnerReference
		deleting bool
		want     string
		waiting  bool
	}{
		{name: "ours", refs: []metav1.OwnerReference{reference("ModelBox", "box", "uid-1")}},
		{name: "ours, being deleted", refs: []metav1.OwnerReference{reference("ModelBox", "box", "uid-1")}, deleting: true, waiting: true,
			want: `waiting for the deletion of an old object: Deployment "box" is being deleted`},
		{name: "without a controller",
			want: `Deployment "box" already exists and has no controller: it is not changed; delete or rename it, or give this object another name`},
		{name: "another owner's", refs: []metav1.OwnerReference{reference("App", "box", "uid-2")},
			want: `Deployment "box" already exists and is controlled by App/box: it is not changed; delete or rename it, or give this object another name`},
		{name: "our predecessor's", refs: []metav1.OwnerReference{reference("ModelBox", "box", "uid-0")}, waiting: true,
			want: `waiting for the deletion of an old object: Deployment "box" is controlled by a deleted ModelBox of this name and waits for garbage collection`},
		{name: "our predecessor's, of another version of the API", waiting: true,
			refs: []metav1.OwnerReference{referenceTo(schema.GroupVersionKind{Group: "model.github.com", Version: "v2", Kind: "ModelBox"}, "box", "uid-0")},
			want: `waiting for the deletion of an old object: Deployment "box" is controlled by a deleted ModelBox of this name and waits for garbage collection`},
		{name: "one of a foreign kind of the same name",
			refs: []metav1.OwnerReference{referenceTo(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "ModelBox"}, "box", "uid-0")},
			want: `Deployment "box" already exists and is controlled by ModelBox/box: it is not changed; delete or rename it, or give this object another name`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			desired := deployment()
			desired.OwnerReferences = []metav1.OwnerReference{reference("ModelBox", "box", "uid-1")}
			live := deployment()
			live.OwnerReferences = test.refs
			if test.deleting {
				live.DeletionTimestamp = &now
			}
			err := checkOwner(live, desired)
			if got := text(err); got != test.want {
				t.Errorf("checkOwner returns %q, want %q", got, test.want)
			}
			if got := status.HasReason(err, status.ReasonWaitingForDeletion); got != test.waiting {
				t.Errorf("waiting is %t, want %t", got, test.waiting)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
