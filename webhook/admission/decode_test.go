// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/test/filled"
)

// TestDecodeAsTheServerDoes: two decoders that read one object differently would be
// a hole, so they are compared over random objects of every kind.
func TestDecodeAsTheServerDoes(t *testing.T) {
	t.Parallel()
	t.Run("ModelBox", same[modelv1.ModelBox])
	t.Run("App", same[appv1.App])
	t.Run("Genericdaemon", same[mydomainv1beta1.Genericdaemon])
	t.Run("UnitedDeployment", same[extensionv1.UnitedDeployment])
	t.Run("Eru", same[mtsrev1.Eru])
}

func same[T any](t *testing.T) {
	fill := filled.Filler(1).NilChance(0.3).NumElements(0, 3)
	for range 300 {
		var given T
		fill.Fill(&given)
		text, err := json.Marshal(given)
		if err != nil {
			t.Fatal(err)
		}
		compare[T](t, text)
	}
	for _, text := range []string{
		`{}`, `null`, `{"metadata":null,"spec":null,"status":null}`, `{"Metadata":{"name":"a"},"SPEC":{"replicas":1}}`,
		`{"metadata":{"name":"a","labels":null,"creationTimestamp":null}}`, `{"metadata":{"name":"a"},"metadata":{"namespace":"b"}}`,
		`{"spec":{"image":"a","replicas":null,"ports":null,"resources":null,"podTemplate":null}}`,
		`{"spec":{"image":"a","image":"b","ports":[],"envs":[{"name":"A"}],"envs":[{"value":"b"}]}}`,
		`{"spec":{"image":"\ud800","unknown":{"a":[]}}}`, "{\"spec\":{\"image\":\"\xff\"}}",
		`{"spec":{"replicas":1.0}}`, `{"spec":{"replicas":"1"}}`, `{"spec":{"replicas":99999999999}}`, `{"spec":[]}`, `{"spec":{}`, ``,
		`{"spec":{"ports":[null,{"port":1,"targetPort":null}]}}`,
	} {
		compare[T](t, []byte(text))
	}
}

// compare decodes text both ways.
func compare[T any](t *testing.T, text []byte) {
	t.Helper()
	want, wantErr := new(T), error(nil)
	wantErr = kjson.UnmarshalCaseSensitivePreserveInts(text, want)
	got, err := decode[T](text)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("decode: %v; the API server's decoder: %v: %s", err, wantErr, text)
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b metav1.FieldsV1) bool { return a.GetRawString() == b.GetRawString() })); err == nil && diff != "" {
		t.Fatalf("decode differs from the API server's decoder (-server +decode):\n%s\n%s", diff, text)
	}
}
