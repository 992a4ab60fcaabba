// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

func many(item string, n int) string {
	return strings.TrimSuffix(strings.Repeat(item+",", n), ",")
}

// TestSizeOfASpec has specs above each bound, and which stored spec permits them.
func TestSizeOfASpec(t *testing.T) {
	t.Parallel()
	leaving := `"deletionTimestamp":"2026-01-01T00:00:00Z"`
	text := func(n int) string { return `{"image":"a","x":"` + strings.Repeat("x", n) + `"}` }
	list := func(n int) string { return `{"image":"a","x":[` + many(`{        }`, n) + `]}` }
	deep := func(n int) string {
		return `{"image":"a","x":` + strings.Repeat(`[        `, n) + strings.Repeat("]", n) + `}`
	}
	for name, tc := range map[string]struct{ spec, old, metadata, want string }{
		"within all bounds":             {text(100 << 10), "", "", ""},
		"too many bytes":                {text(130 << 10), "", "", "may not be more than 131072 bytes"},
		"as many as are stored":         {text(130 << 10), text(130 << 10), "", ""},
		"more than are stored":          {text(131 << 10), text(130 << 10), "", "may not be more than 131072 bytes"},
		"fewer than are stored":         {text(130 << 10), text(131 << 10), "", ""},
		"spaces do not count":           {strings.Repeat(" ", 200<<10) + text(10), "", "", ""},
		"too many items":                {list(600), "", "", "may not be more than 512 items of other lists"},
		"as many items as are stored":   {list(600), list(600), "", ""},
		"other items than are stored":   {list(600), text(200 << 10), "", "may not be more than 512 items"},
		"too deep":                      {deep(600), "", "", "may not be more than 64 levels"},
		"too deep, while being deleted": {deep(600), text(1), leaving, "may not be more than 64 levels"},
		"wrong, while being deleted":    {`{"replicas":-1}`, text(1), leaving, ""},
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
			for _, handler := range []admission.Handler{NewDefaulter[Box](boxKind), NewValidator[Box](boxKind)} {
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

// TestMuchMetadata: of an object with much metadata, what is read is still there.
func TestMuchMetadata(t *testing.T) {
	t.Parallel()
	const manifest = `"kubectl.kubernetes.io/last-applied-configuration":"{}"`
	object := `{"metadata":{"finalizers":[` + many(`""`, 3000) + `],"name":"a","labels":{"x":"y"},"annotations":{"b":"c",` + manifest +
		`},"managedFields":[{"manager":"m"}],"x":[{}]},"status":{"x":1},"spec":{"image":"a"},"other":[` + many("{}", 3000) + `]}`
	want := `{"metadata":{"name":"a","annotations":{` + manifest + `},"managedFields":[{"manager":"m"}]},"spec":{"image":"a"}}`
	if got := string(decodable([]byte(object))); got != want {
		t.Errorf("decoded is %s, want %s", got, want)
	}
	for _, object := range []string{`[` + many("{}", 3000) + `]`, `{"metadata":[` + many("{}", 3000) + `]}`, `{"metadata":null,"x":[` + many("{}", 3000) + `]}`} {
		if got := string(decodable([]byte(object))); got != `{"metadata":{},"spec":null}` {
			t.Errorf("of %.20s... decoded is %s", object, got)
		}
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
	kind.Warn = func(*Box) (warnings []string) {
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

// TestAClientThatIsGone: no work is done for it.
func TestAClientThatIsGone(t *testing.T) {
	t.Parallel()
	validated := 0
	kind := boxKind
	kind.Validate = func(*Box) field.ErrorList {
		validated++
		return nil
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, webhook := range []http.Handler{mutatingWebhook(kind), validatingWebhook(kind)} {
		r := httptest.NewRequestWithContext(gone, http.MethodPost, "/", strings.NewReader(reviewOf("CREATE", complete(), nil)))
		r.Header.Set("Content-Type", "application/json")
		webhook.ServeHTTP(httptest.NewRecorder(), r)
	}
	// A client that goes while its object is decoded.
	for _, handler := range []admission.Handler{NewDefaulter[Box](kind), NewValidator[Box](kind)} {
		req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{UID: "u", Kind: metav1.GroupVersionKind(boxGVK), Operation: admissionv1.Create}}
		req.Object.Raw = []byte(`{"spec":{"image":"a"}}`)
		if resp := handler.Handle(gone, req); resp.Allowed {
			t.Errorf("%T allows it", handler)
		}
	}
	if validated > 0 {
		t.Errorf("%d objects were validated", validated)
	}
}

// TestManyErrorsAreCompared: the order of the errors and of their sizes does not matter, and
// a path can have any length.
func TestManyErrorsAreCompared(t *testing.T) {
	t.Parallel()
	var errs field.ErrorList
	for i := range 5000 {
		errs = append(errs, field.Required(field.NewPath("spec", "x").Index(i), ""))
	}
	errs = append(errs, field.TypeInvalid(field.NewPath("spec").Key(strings.Repeat("[1]", 50000)), 1, ""))
	if got := added(errs, errs[1:]); len(got) != 1 {
		t.Errorf("%d new errors, want one", len(got))
	}
	if got := withoutEchoes(errs, []byte(`{"spec":{}}`)); len(rules.First(got)) != rules.MaxErrors+1 {
		t.Errorf("%d errors are left", len(got))
	}
	if got := pointer(errs[5000].Field); strings.Count(got, "/") < 50000 {
		t.Errorf("%d names", strings.Count(got, "/"))
	}
}
