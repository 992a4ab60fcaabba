// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/controller/cache"
)

// FuzzDecodersAgree decodes an object that an API server could have stored with the
// decoder of the cache, and with the one of client-go (sigs.k8s.io/json). Otherwise the
// controller could reconcile another spec than the one that was admitted.
func FuzzDecodersAgree(f *testing.F) {
	seed(f)
	scheme := apiruntime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, kind byte, spec, status, metadata []byte) {
		gvk := storedKinds[int(kind)%len(storedKinds)].gvk
		stored, ok := encodedByServer(fmt.Appendf(nil,
			`{"apiVersion":%q,"kind":%q,"metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"1"%s},"spec":%s,"status":%s}`,
			gvk.GroupVersion(), gvk.Kind, metadata, spec, status))
		if !ok {
			return
		}
		sameAsClientGo(t, scheme, gvk, stored)
	})
}

// encodedByServer decodes an object and encodes it again, as an API server does before it
// stores a custom resource: without duplicate names, and in valid UTF-8. managedFields are
// left out, because only the API server reads them.
func encodedByServer(object []byte) ([]byte, bool) {
	var tree map[string]any
	if kjson.UnmarshalCaseSensitivePreserveInts(object, &tree) != nil {
		return nil, false
	}
	if metadata, ok := tree["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	stored, err := json.Marshal(tree)
	return stored, err == nil
}

func sameAsClientGo(t *testing.T, scheme *apiruntime.Scheme, gvk schema.GroupVersionKind, stored []byte) {
	t.Helper()
	got := cache.DecodeObject(scheme, gvk, stored)
	if got == nil || cache.DecodeErrorOf(got) != nil {
		return // client-go's decoder gets it, or the object is reported and not reconciled.
	}
	want, err := scheme.New(gvk)
	if err != nil {
		t.Fatal(err)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(stored, want); err != nil {
		t.Fatalf("client-go's decoder refuses this: %v: %s", err, stored)
	}
	// As in all typed clients, the TypeMeta stays empty.
	want.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	if diff := cmp.Diff(want, apiruntime.Object(got), seconds); diff != "" {
		t.Fatalf("the cache's decoder differs from client-go's (-client-go +cache):\n%s\n%s", diff, stored)
	}
}

// seconds compares times in whole seconds, in which they are encoded and which the cache
// keeps.
var seconds = cmp.Options{
	cmp.Comparer(func(a, b metav1.Time) bool { return a.Truncate(time.Second).Equal(b.Truncate(time.Second)) }),
	cmp.FilterValues(func(a, b *metav1.Time) bool { return a != nil && b != nil }, cmp.Comparer(func(a, b *metav1.Time) bool {
		return a.Truncate(time.Second).Equal(b.Truncate(time.Second))
	})),
}
