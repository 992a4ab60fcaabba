// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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
		{name: "ours, on its way out", refs: []metav1.OwnerReference{reference("ModelBox", "box", "uid-1")}, deleting: true, waiting: true,
			want: `waiting for an old object to be gone: Deployment "box" is being deleted`},
		{name: "nobody's",
			want: `Deployment "box" exists and belongs to no controller: it is left as it is; delete or rename it, or give this object another name`},
		{name: "somebody else's", refs: []metav1.OwnerReference{reference("App", "box", "uid-2")},
			want: `Deployment "box" exists and belongs to App/box: it is left as it is; delete or rename it, or give this object another name`},
		{name: "our predecessor's", refs: []metav1.OwnerReference{reference("ModelBox", "box", "uid-0")}, waiting: true,
			want: `waiting for an old object to be gone: Deployment "box" belonged to a deleted ModelBox of this name and is being collected`},
		{name: "our predecessor's, of another version of the API", waiting: true,
			refs: []metav1.OwnerReference{referenceTo(schema.GroupVersionKind{Group: "model.github.com", Version: "v2", Kind: "ModelBox"}, "box", "uid-0")},
			want: `waiting for an old object to be gone: Deployment "box" belonged to a deleted ModelBox of this name and is being collected`},
		{name: "one of a foreign kind of the same name",
			refs: []metav1.OwnerReference{referenceTo(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "ModelBox"}, "box", "uid-0")},
			want: `Deployment "box" exists and belongs to ModelBox/box: it is left as it is; delete or rename it, or give this object another name`},
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
				t.Errorf("checkOwner says %q, want %q", got, test.want)
			}
			if got := errors.Is(err, ErrDeleting); got != test.waiting {
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
