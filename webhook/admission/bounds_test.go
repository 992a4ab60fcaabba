// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	sigsjson "sigs.k8s.io/json"

	"github.com/modelbox-operator/modelbox-operator/kinds"
)

func many(item string, n int) string {
	return strings.TrimSuffix(strings.Repeat(item+",", n), ",")
}

// TestSizeOfASpec: a spec above a bound may stay as it is stored. One that changes is within the
// bounds and judged, or refused.
func TestSizeOfASpec(t *testing.T) {
	t.Parallel()
	leaving := `"deletionTimestamp":"2026-01-01T00:00:00Z"`
	text := func(n int) string { return `{"image":"a","x":"` + strings.Repeat("x", n) + `"}` }
	list := func(n int) string { return `{"image":"a","x":[` + many(`{}`, n) + `]}` }
	deep := func(n int) string { return `{"image":"a","x":` + strings.Repeat(`[`, n) + strings.Repeat("]", n) + `}` }
	long := text(130 << 10)
	for name, tc := range map[string]struct{ spec, old, metadata, want string }{
		"within all bounds":             {text(100 << 10), "", "", ""},
		"too many bytes":                {long, "", "", "bytes; at most 131072 are allowed"},
		"unchanged, and wrong":          {`{"x":"` + strings.Repeat("x", 130<<10) + `"}`, `{"x":"` + strings.Repeat("x", 130<<10) + `"}`, "", ""},
		"fewer bytes than are stored":   {long, text(131 << 10), "", "bytes; at most 131072 are allowed"},
		"from there to within":          {text(10), long, "", ""},
		"from there to a wrong one":     {`{"replicas":-1,"image":"a"}`, long, "", "spec.replicas"},
		"too many items":                {list(600), "", "", "has 600 items of other lists; at most 512 are allowed"},
		"too many quantities":           {`{"image":"a","resources":{"limits":{` + numbered(`"a/%d":"1"`, 513) + `}}}`, "", "", "has 513 quantities; at most 512 are allowed"},
		"too deep":                      {deep(600), "", "", "levels of objects and lists; at most 64 are allowed"},
		"too deep, while being deleted": {deep(600), text(1), leaving, "at most 64 are allowed"},
		"deeper than JSON may be":       {deep(10001), "", "", "exceeded max depth"},
		"wrong, while being deleted":    {`{"replicas":-1}`, text(1), leaving, ""},
		"a field twice":                 {`{"image":"a","image":"b"}`, "", "", "duplicate field"},
		"a quantity of a billion digits": {
			`{"image":"a","resources":{"limits":{"cpu":"1e999999999"}}}`, "", "", "spec.resources.limits[cpu]",
		},
		"the same, escaped": {`{"image":"a","resources":{"limits":{"cpu":"\u0031e99\u003999999"}}}`, "", "", "spec.resources.limits[cpu]"},
		"as a number":       {`{"image":"a","resources":{"requests":{"cpu":1e300}}}`, "", "", "spec.resources.requests[cpu]"},
		"pages of such a size": {
			`{"image":"a","resources":{"limits":{"hugepages-1e999999999":"1"}}}`, "", "", "spec.resources.limits[hugepages-1e999999999]",
		},
		"text that looks like one": {`{"image":"a","envs":[{"name":"COMMIT","value":"12e3456"}]}`, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			metadata := func(members string) string { return `{"metadata":{"name":"a"` + members + `},"spec":` }
			req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				UID: "u", Kind: metav1.GroupVersionKind(boxGVK), Operation: admissionv1.Create,
			}}
			members := ""
			if tc.metadata != "" {
				members = "," + tc.metadata
			}
			req.Object.Raw = []byte(metadata(members) + tc.spec + "}")
			if tc.old != "" {
				req.Operation, req.OldObject = admissionv1.Update, runtime.RawExtension{Raw: []byte(metadata(members) + tc.old + "}")}
			}
			for _, handler := range []admission.Handler{NewDefaulter(kinds.Erase(boxKind)), NewValidator(kinds.Erase(boxKind))} {
				resp := handler.Handle(t.Context(), req)
				if tc.want == "" && !resp.Allowed {
					t.Errorf("%T refuses it: %v", handler, resp.Result)
				}
				if tc.want != "" && (resp.Allowed || len(resp.Result.Details.Causes) != 1 || !strings.Contains(resp.Result.Message, tc.want)) {
					t.Errorf("%T: allowed %v, %v, want one error with %q", handler, resp.Allowed, resp.Result, tc.want)
				}
			}
		})
	}
}

// TestAnswerIsBounded: there is no room for everything that a client sent.
func TestAnswerIsBounded(t *testing.T) {
	t.Parallel()
	kind := boxKind
	kind.Validate = func(*Box) (errs field.ErrorList) {
		for i := range 5000 {
			errs = append(errs, field.Invalid(field.NewPath("spec", strings.Repeat("<", 9000)).Index(i), strings.Repeat("\x00", 9000), strings.Repeat("<", 9000)))
		}
		return errs
	}
	for name, webhook := range map[string]http.Handler{"mutating": mutatingWebhook(kind), "validating": validatingWebhook(kind)} {
		w := post(webhook, reviewOf("CREATE", typical(), nil))
		if w.Body.Len() > 64<<10 || !strings.Contains(w.Body.String(), "more") {
			t.Errorf("%s: %d bytes", name, w.Body.Len())
		}
	}
	kind = boxKind
	kind.Validate = func(*Box) field.ErrorList { return nil }
	kind.Warn = func(_, _ *Box, _ time.Time) (warnings []string) {
		for i := range 1000 {
			warnings = append(warnings, fmt.Sprint(i, strings.Repeat("x", 1000)))
		}
		return warnings
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(post(validatingWebhook(kind), reviewOf("CREATE", complete(), nil)).Body.Bytes(), &review); err != nil {
		t.Fatal(err)
	}
	warnings := review.Response.Warnings
	if len(warnings) != 20 || warnings[19] != "and 981 more warnings" || len(warnings[0]) != 120 {
		t.Errorf("%d warnings: %.30q", len(warnings), warnings)
	}
}

// numbered returns an item so many times, each with its number.
func numbered(item string, n int) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(item, i)
	}
	return strings.Join(items, ",")
}

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
