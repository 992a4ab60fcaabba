// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package admission

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/test/replay"
)

// TestMemory holds the webhooks to the allocations that any webhook has: those of
// decoding the object, of the kind's own functions and of marshalling what they set,
// and those of decoding a review and encoding the answer. (The race detector makes pools
// forget at random, so they are not counted there.)
func TestMemory(t *testing.T) {
	const review = 10 // What a review of k8s.io/api/admission/v1 and its answer cost.
	for name, tc := range map[string]struct {
		handler http.Handler
		obj     *Box
	}{
		"mutating, changed":   {mutatingWebhook(boxKind), typical()},
		"mutating, unchanged": {mutatingWebhook(boxKind), complete()},
		"validating":          {validatingWebhook(boxKind), complete()},
	} {
		tc.obj.ManagedFields = nil
		object, text := []byte(marshal(tc.obj)), []byte(reviewOf("CREATE", tc.obj, nil))
		var ops patch.Ops
		needed := testing.AllocsPerRun(200, func() {
			obj, err := decode[Box](object)
			if err != nil {
				t.Fatal(err)
			}
			ops.Reset()
			defaultBox(obj, nil, &ops)
			validateBox(obj)
			if err := ops.Fit(object); err != nil {
				t.Fatal(err)
			}
		})
		client, answer := replay.New(), []byte(nil)
		got := testing.AllocsPerRun(200, func() { answer = client.Post(tc.handler, text) })
		if !bytes.Contains(answer, []byte(`"allowed":true`)) {
			t.Fatalf("%s: %s", name, answer)
		}
		if got > needed+review {
			t.Errorf("%s: %v allocations, want at most %v for the object and %v for the review", name, got, needed, review)
		}
	}
}
