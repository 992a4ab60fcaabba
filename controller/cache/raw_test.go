// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
)

const metadata = `"metadata":{"name":"box","namespace":"team","uid":"1","resourceVersion":"7","generation":3,"labels":{"a":"b"}%s}`

// document returns a ModelBox in JSON, with more in its metadata.
func document(more, rest string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"model.github.com/v1","kind":"ModelBox",`+metadata+`%s}`, more, rest)
}

func TestAnObjectIsDecodedAsItWasStored(t *testing.T) {
	t.Parallel()
	managed := `,"managedFields":[{"manager":"x","time":"no time","fieldsV1":{"f:spec":{}}}]`
	rest := `,"spec":{"image":"a:1","replicas":2,"podTemplate":{"spec":{"nodeName":"n"}}},"status":{"replicas":2,"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z","reason":"Ready","message":"a time in it: \"lastTransitionTime\":\"9999-12-31T\""}]}`
	in := &stored[modelv1.ModelBox]{}
	if err := json.Unmarshal(document(managed, rest), in); err != nil {
		t.Fatal(err)
	}
	got, err := Typed[*modelv1.ModelBox](in.DeepCopyObject().(undecoded))
	if err != nil {
		t.Fatal(err)
	}
	want := &modelv1.ModelBox{}
	if err := json.Unmarshal(document("", rest), want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeDecoded(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, rest, want, status string }{
		{"spec", `,"spec":{"replicas":"x"},"status":{"replicas":2}`, "spec.replicas", `{"replicas":2}`},
		{"spec, without a status", `,"spec":1`, "spec", `{}`},
		{"an expensive quantity", `,"spec":{"resources":{"limits":{"cpu":"1e999999999"}}}`, "spec.resources.limits[cpu]", `{}`},
		{"status", `,"spec":{},"status":{"replicas":"x"}`, "status", `{"replicas":"x"}`},
		{"a status that is no object", `,"spec":{},"status":"x"`, "status", `{}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			in := &stored[modelv1.ModelBox]{}
			if err := json.Unmarshal(document("", test.rest), in); err != nil {
				t.Fatal(err)
			}
			box, err := Typed[*modelv1.ModelBox](in)
			failure, ok := errors.AsType[*UndecodableError](err)
			if !ok || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 1000 {
				t.Fatalf("the error is %v, want an UndecodableError that names %s", err, test.want)
			}
			if box.Name != "box" || box.Generation != 3 || box.Labels["a"] != "b" || box.Spec.Image != "" {
				t.Errorf("the object is %+v, want its metadata and no spec", box)
			}
			if test.status != "" && string(failure.Status) != test.status {
				t.Errorf("the stored status is %s, want %s", failure.Status, test.status)
			}
			if statusToo := !strings.HasPrefix(test.want, "spec"); failure.StatusToo != statusToo || (box.Status.Replicas == 2) != (test.status == `{"replicas":2}`) {
				t.Errorf("status is decoded: %v, as %+v", !failure.StatusToo, box.Status)
			}
		})
	}
}

// The codecs of client-go decode the stored types, in lists as alone.
func TestClientGoDecodesStoredTypes(t *testing.T) {
	t.Parallel()
	c := &decodingCache{typed: runtime.NewScheme(), stored: runtime.NewScheme()}
	if err := errors.Join(api.AddToScheme(c.typed), add[modelv1.ModelBox](c), add[mtsrev1.Eru](c)); err != nil {
		t.Fatal(err)
	}
	list := fmt.Appendf(nil, `{"apiVersion":"model.github.com/v1","kind":"ModelBoxList","metadata":{"resourceVersion":"9","continue":"c"},"items":[%s,%s]}`,
		document("", `,"spec":{"image":1}`), document("", `,"spec":{"image":"a:1"}`))
	decoder := serializer.NewCodecFactory(c.stored).UniversalDeserializer()
	decoded, _, err := decoder.Decode(list, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := decoded.DeepCopyObject().(*storedList[modelv1.ModelBox])
	if len(got.Items) != 2 || got.Continue != "c" || got.ResourceVersion != "9" {
		t.Fatalf("the list is %+v", got)
	}
	if box, err := Typed[*modelv1.ModelBox](&got.Items[1]); err != nil || box.Spec.Image != "a:1" {
		t.Errorf("the second object is %+v, %v", box, err)
	}
	var metadata metav1.Object = &got.Items[0]
	if metadata.GetName() != "box" || metadata.GetResourceVersion() != "7" {
		t.Errorf("the first object has the metadata %+v", metadata)
	}
}

// FuzzStored: no JSON that an API server may send stops an informer, and what is decoded is what a
// typed client decodes.
func FuzzStored(f *testing.F) {
	f.Add(`,"spec":{"image":"a:1"}`)
	f.Add(`,"spec":{"resources":{"limits":{"cpu":"1e9"}}},"status":{"replicas":1}`)
	f.Add(`,"spec":[],"status":{"conditions":null}`)
	f.Fuzz(func(t *testing.T, rest string) {
		data := document("", rest)
		var object map[string]any
		if json.Unmarshal(data, &object) != nil {
			t.Skip("no JSON object")
		}
		in := &stored[modelv1.ModelBox]{}
		if err := json.Unmarshal(data, in); err != nil {
			t.Skip("not an object that the API server stores")
		}
		if got, err := Typed[*modelv1.ModelBox](in); err == nil {
			if _, err := json.Marshal(got); err != nil {
				t.Errorf("%s is decoded to what cannot be encoded: %v", rest, err)
			}
		}
	})
}
