// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"

	sigsjson "sigs.k8s.io/json"
)

// FuzzHandler sends both webhooks whatever comes as a body, and whatever comes as an
// object in a review as the API server makes it. There is always an answer, and
// what it says of an object holds: the patch applies, leaves alone what was typed,
// and on the outcome there is nothing left to patch.
func FuzzHandler(f *testing.F) {
	body := reviewOf("UPDATE", typical(), complete())
	for _, object := range []string{
		marshal(typical()), marshal(complete()), `{}`, `{"spec":null}`, `{"spec":{}}`, `[]`, `{"metadata":{"name":7}}`,
		`{"spec":{"ports":[null,{"port":1}],"rollout":{},"probe":{},"size":"large","scratch":"x"}}`,
		`{"spec":{"image":"a","rollout":null,"resources":{"limits":{"cpu":"1","memory":"2Gi"}}},"status":{"x":1}}`,
		`{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}`,
	} {
		f.Add([]byte(body), []byte(object))
		f.Add([]byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"`+uid+`","object":`+object+`}}`), []byte(object))
	}
	for _, body := range []string{``, `null`, `{"kind":"AdmissionReview"`, strings.Repeat("[", 99), edit(body, null, "request", "object")} {
		f.Add([]byte(body), []byte(`{}`))
	}
	mutating, validating := mutatingWebhook(boxKind), validatingWebhook(boxKind)
	f.Fuzz(func(t *testing.T, body, object []byte) {
		answers(t, mutating, string(body))
		answers(t, validating, string(body))
		sent, ok := asSent(object)
		if !ok {
			return
		}
		for _, review := range []string{
			edit(reviewOf("CREATE", typical(), nil), sent, "request", "object"),
			edit(reviewOf("UPDATE", typical(), complete()), sent, "request", "object"),
		} {
			answers(t, validating, review)
			settles(t, mutating, review)
		}
	})
}

// asSent is an object as the API server sends one on: decoded and encoded again.
func asSent(object []byte) (json.RawMessage, bool) {
	var tree map[string]any
	if sigsjson.UnmarshalCaseSensitivePreserveInts(object, &tree) != nil || tree == nil {
		return nil, false
	}
	sent, err := json.Marshal(tree)
	return sent, err == nil
}

func answers(t *testing.T, handler http.Handler, body string) {
	w := post(handler, body)
	if w.Code != http.StatusOK || !json.Valid(w.Body.Bytes()) {
		t.Fatalf("answered %d: %s", w.Code, w.Body)
	}
}

func settles(t *testing.T, handler http.Handler, review string) {
	r := ask(t, handler, review)
	if len(r.Patch) == 0 {
		return
	}
	after := patched(t, review, r)
	var was struct{ Request struct{ Object any } }
	var is any
	if json.Unmarshal([]byte(review), &was) != nil || json.Unmarshal(after, &is) != nil {
		t.Fatalf("not JSON: %s", after)
	}
	keeps(t, "", was.Request.Object, is)
	if again := ask(t, handler, edit(review, json.RawMessage(after), "request", "object")); !again.Allowed || len(again.Patch) > 0 {
		t.Fatalf("%s is not settled: allowed %v, patch %s", after, again.Allowed, again.Patch)
	}
}

// keeps fails if something that was is not any more. What says nothing, null or "",
// may be filled in, and defaultBox itself removes scratch and replaces resources.
func keeps(t *testing.T, path string, was, is any) {
	if was == nil || was == "" || path == "/spec/scratch" || path == "/spec/resources" {
		return
	}
	switch w := was.(type) {
	case map[string]any:
		i, ok := is.(map[string]any)
		if !ok {
			t.Fatalf("%s was %v and is %v", path, was, is)
		}
		for key := range w {
			keeps(t, path+"/"+key, w[key], i[key])
		}
	case []any:
		i, ok := is.([]any)
		if !ok || len(i) != len(w) {
			t.Fatalf("%s was %v and is %v", path, was, is)
		}
		for n := range w {
			keeps(t, path+"/"+strconv.Itoa(n), w[n], i[n])
		}
	default:
		if !reflect.DeepEqual(was, is) {
			t.Fatalf("%s was %v and is %v", path, was, is)
		}
	}
}
