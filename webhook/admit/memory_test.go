// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package admit

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/modelbox-operator/modelbox-operator/webhook/patch"
)

// TestMemory holds what the handlers add to the work that any handler has: decoding,
// the kind's own functions, and the marshalling of what they set. (The race
// detector makes pools forget at random, so it is not counted there.)
func TestMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		handler http.Handler
		obj     *Box
	}{
		"mutating, changed":   {Mutating(boxKind), typical()},
		"mutating, unchanged": {Mutating(boxKind), complete()},
		"validating":          {Validating(boxKind), complete()},
	} {
		tc.obj.ManagedFields = nil
		object, review := []byte(marshal(tc.obj)), []byte(reviewOf("CREATE", tc.obj, nil))
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
		body, w := &rewinder{}, &recorder{header: http.Header{}}
		r, err := http.NewRequest(http.MethodPost, "/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Body = body
		got := testing.AllocsPerRun(200, func() {
			body.Reset(review)
			w.body.Reset()
			tc.handler.ServeHTTP(w, r)
		})
		if !bytes.Contains(w.body.Bytes(), []byte(`"allowed":true`)) {
			t.Fatalf("%s: %s", name, w.body.Bytes())
		}
		if got > needed {
			t.Errorf("%s: %v allocations, of which the work needs %v", name, got, needed)
		}
	}
}
