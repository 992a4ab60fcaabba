// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/modelbox-operator/modelbox-operator/kinds"
)

const uid = "705ab4f5-6393-11e8-b7cc-42010a800002"

func post(handler http.Handler, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// ask sends a review and returns the answer, checked as the API server checks it.
func ask(t testing.TB, handler http.Handler, body string) *admissionv1.AdmissionResponse {
	t.Helper()
	w := post(handler, body)
	if w.Code != http.StatusOK {
		t.Fatalf("answered %d: %s", w.Code, w.Body)
	}
	var review admissionv1.AdmissionReview
	decoder := json.NewDecoder(w.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&review); err != nil {
		t.Fatalf("the answer is not a review: %v", err)
	}
	r := review.Response
	if review.GroupVersionKind() != admissionv1.SchemeGroupVersion.WithKind("AdmissionReview") || r == nil || string(r.UID) != uid {
		t.Fatalf("the answer is not to the request: %+v", review)
	}
	if r.Allowed {
		r.Result = nil // The API server ignores it.
	}
	if (len(r.Patch) > 0) != (r.PatchType != nil) || r.Allowed == (r.Result != nil) {
		t.Fatalf("the answer is inconsistent: %+v", r)
	}
	return r
}

// edit changes a review as JSON: the value at a path of keys, or its removal.
func edit(review string, value any, path ...string) string {
	var tree map[string]any
	if err := json.Unmarshal([]byte(review), &tree); err != nil {
		panic(err)
	}
	at := tree
	for _, key := range path[:len(path)-1] {
		at = at[key].(map[string]any)
	}
	if last := path[len(path)-1]; value == nil {
		delete(at, last)
	} else {
		at[last] = value
	}
	return marshal(tree)
}

var null = json.RawMessage("null")

// patched is the object of a review after the answer's patch.
func patched(t testing.TB, review string, r *admissionv1.AdmissionResponse) []byte {
	t.Helper()
	var in admissionv1.AdmissionReview
	if err := json.Unmarshal([]byte(review), &in); err != nil {
		t.Fatal(err)
	}
	if len(r.Patch) == 0 {
		return in.Request.Object.Raw
	}
	ops, err := jsonpatch.DecodePatch(r.Patch)
	if err != nil {
		t.Fatalf("decoding %s: %v", r.Patch, err)
	}
	out, err := ops.Apply(in.Request.Object.Raw)
	if err != nil {
		t.Fatalf("applying %s to %s: %v", r.Patch, in.Request.Object.Raw, err)
	}
	return out
}

func TestMutating(t *testing.T) {
	t.Parallel()
	large := func(b *Box) { b.Spec.Size, b.Spec.Resources = "large", nil }
	for name, tc := range map[string]struct {
		review string
		want   *Box
		patch  string // "some", "none", or the operations
	}{
		"fills in what is open":        {reviewOf("CREATE", typical(), nil), complete(), "some"},
		"leaves alone what is there":   {reviewOf("CREATE", complete(), nil), complete(), "none"},
		"an update that changes spec":  {reviewOf("UPDATE", with(complete(), func(b *Box) { b.Spec.Image = "b" }), complete()), with(complete(), func(b *Box) { b.Spec.Image = "b" }), "none"},
		"an update without old object": {reviewOf("UPDATE", typical(), nil), complete(), "some"},
		"what was derived follows": {
			reviewOf("UPDATE", with(complete(), func(b *Box) { b.Spec.Size = "large" }), complete()),
			with(with(complete(), large), func(b *Box) { defaultBox(b) }),
			`[{"op":"add","path":"/spec/resources/limits/cpu","value":"4"},{"op":"add","path":"/spec/resources/limits/memory","value":"8Gi"},` +
				`{"op":"add","path":"/spec/resources/requests/cpu","value":"4"},{"op":"add","path":"/spec/resources/requests/memory","value":"8Gi"}]`,
		},
		"an old object of which a part cannot be read": {
			edit(reviewOf("UPDATE", typical(), complete()), "x", "request", "oldObject", "spec", "replicas"), complete(), "some",
		},
		"no spec, where nothing is required": {
			edit(reviewOf("CREATE", with(typical(), func(b *Box) { b.Spec = BoxSpec{Image: "a"} }), nil), map[string]any{"image": "a"}, "request", "object", "spec"),
			with(typical(), func(b *Box) { b.Spec = BoxSpec{Image: "a"}; defaultBox(b) }),
			"some",
		},
		"a removal": {
			reviewOf("CREATE", with(complete(), func(b *Box) { b.Spec.Scratch = new("x") }), nil), complete(),
			`[{"op":"remove","path":"/spec/scratch"}]`,
		},
		"a dry run":             {edit(reviewOf("CREATE", typical(), nil), true, "request", "dryRun"), complete(), "some"},
		"a key of another case": {edit(reviewOf("CREATE", typical(), nil), 7, "request", "object", "spec", "Replicas"), complete(), "some"},
		"a status of no shape":  {edit(reviewOf("CREATE", complete(), nil), map[string]any{"phase": 7}, "request", "object", "status"), nil, "none"},
		"a wrong type that was there before": {
			edit(edit(reviewOf("UPDATE", typical(), typical()), "four", "request", "object", "spec", "replicas"), "four", "request", "oldObject", "spec", "replicas"),
			nil, "none",
		},
		"a null where an object belongs": {
			edit(reviewOf("CREATE", typical(), nil), []any{nil, map[string]any{"port": 1}}, "request", "object", "spec", "ports"), nil, "none",
		},
		"being deleted": {
			reviewOf("UPDATE", with(typical(), func(b *Box) { b.DeletionTimestamp = new(metav1.Now()); b.Spec.Image = "" }), complete()), nil, "none",
		},
		"delete":      {reviewOf("DELETE", nil, typical()), nil, "none"},
		"connect":     {reviewOf("CONNECT", nil, nil), nil, "none"},
		"subresource": {edit(edit(reviewOf("UPDATE", typical(), nil), "scale", "request", "subResource"), "Scale", "request", "kind", "kind"), nil, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The null item has port 0 and would be refused for that.
			kind := boxKind
			if strings.HasPrefix(name, "a null") {
				kind.Validate = func(*Box) field.ErrorList { return nil }
			}
			r := ask(t, mutatingWebhook(kind), tc.review)
			if !r.Allowed || len(r.Warnings) > 0 {
				t.Fatalf("allowed %v, warnings %q, status %v", r.Allowed, r.Warnings, r.Result)
			}
			switch {
			case tc.patch == "some" && len(r.Patch) == 0, tc.patch == "none" && len(r.Patch) > 0:
				t.Errorf("patch %s, want %s", r.Patch, tc.patch)
			case strings.HasPrefix(tc.patch, "[") && tc.patch != string(r.Patch):
				t.Errorf("patch %s, want %s", r.Patch, tc.patch)
			}
			if tc.want == nil {
				return
			}
			got, err := decode(read(runtime.RawExtension{Raw: patched(t, tc.review, r)}), &Box{}, true)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(marshal(tc.want.Spec), marshal(got.Spec)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What cannot change is refused beside all other errors, and is not an error of a new object.
func TestImmutable(t *testing.T) {
	t.Parallel()
	kind := boxKind
	kind.Immutable = func(obj, old *Box) field.ErrorList {
		if obj.Spec.Size == old.Spec.Size {
			return nil
		}
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "size"), "cannot change")}
	}
	small := func(image string) *Box {
		return with(complete(), func(b *Box) { b.Spec.Size, b.Spec.Resources, b.Spec.Image = "large", nil, image })
	}
	for review, want := range map[string]string{
		reviewOf("CREATE", small("a"), nil):        "",
		reviewOf("UPDATE", small("b"), small("a")): "",
		reviewOf("UPDATE", small("b"), complete()): "spec.size",
		reviewOf("UPDATE", small(""), complete()):  "spec.image spec.size",
	} {
		var fields []string
		if r := ask(t, mutatingWebhook(kind), review); !r.Allowed {
			for _, cause := range r.Result.Details.Causes {
				fields = append(fields, cause.Field)
			}
		}
		if got := strings.Join(fields, " "); got != want {
			t.Errorf("%s: refused for %q, want %q", review, got, want)
		}
	}
}

func TestMutatingWithoutSpec(t *testing.T) {
	t.Parallel()
	kind := boxKind
	kind.Validate = func(*Box) field.ErrorList { return nil }
	for name, review := range map[string]string{
		"absent": edit(reviewOf("CREATE", typical(), nil), nil, "request", "object", "spec"),
		"empty":  edit(reviewOf("CREATE", typical(), nil), map[string]any{}, "request", "object", "spec"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := decode(read(runtime.RawExtension{Raw: patched(t, review, ask(t, mutatingWebhook(kind), review))}), &Box{}, true)
			if err != nil || got.Spec.Replicas == nil || got.Spec.Rollout.Surge == nil {
				t.Errorf("spec %+v (%v), want defaults", got.Spec, err)
			}
		})
	}
}

// TestRefusals runs on both webhooks: whichever comes first says the same.
func TestRefusals(t *testing.T) {
	t.Parallel()
	spec := field.NewPath("spec")
	noImage := field.Required(spec.Child("image"), "say what to run")
	negative := field.Invalid(spec.Child("replicas"), int32(-1), "must be 0 or more")
	badPort := func(i int) *field.Error {
		return field.Invalid(spec.Child("ports").Index(i).Child("port"), int32(0), "must be 1 to 65535")
	}
	bad := func(b *Box) { b.Spec.Image, b.Spec.Replicas = "", new(int32(-1)) }
	noImageAtAll := func(b *Box) { b.Spec.Image = "" }
	addPorts := func(ports ...BoxPort) func(*Box) {
		return func(b *Box) {
			for i := range ports {
				ports[i].Name, ports[i].Protocol = "p", "TCP"
			}
			b.Spec.Ports = append(ports, b.Spec.Ports...)
		}
	}
	for name, tc := range map[string]struct {
		review string
		want   field.ErrorList
	}{
		"nothing wrong":          {reviewOf("CREATE", complete(), nil), nil},
		"all errors in one":      {reviewOf("CREATE", with(complete(), bad), nil), field.ErrorList{noImage, negative}},
		"a dry run":              {edit(reviewOf("CREATE", with(complete(), bad), nil), true, "request", "dryRun"), field.ErrorList{noImage, negative}},
		"an update that changes": {reviewOf("UPDATE", with(complete(), bad), complete()), field.ErrorList{noImage, negative}},
		"what was there before":  {reviewOf("UPDATE", with(with(complete(), bad), func(b *Box) { b.Spec.Size = "other" }), with(complete(), bad)), nil},
		"one there, one new": {
			reviewOf("UPDATE", with(complete(), bad), with(complete(), func(b *Box) { b.Spec.Image = "" })), field.ErrorList{negative},
		},
		"another value": {
			reviewOf("UPDATE", with(complete(), bad), with(complete(), func(b *Box) { b.Spec.Image, b.Spec.Replicas = "", new(int32(-2)) })),
			field.ErrorList{negative},
		},
		"an item that moved": {
			reviewOf("UPDATE", with(with(complete(), addPorts(BoxPort{})), addPorts(BoxPort{Port: 1})), with(complete(), addPorts(BoxPort{}))), nil,
		},
		"a second one like it": {
			reviewOf("UPDATE", with(complete(), addPorts(BoxPort{}, BoxPort{})), with(complete(), addPorts(BoxPort{}))), field.ErrorList{badPort(1)},
		},
		"an old object of which a part cannot be read": {
			edit(reviewOf("UPDATE", with(complete(), bad), with(complete(), bad)), "x", "request", "oldObject", "spec", "ports"), field.ErrorList{noImage, negative},
		},
		"an old object of which a part cannot be read, corrected": {
			edit(reviewOf("UPDATE", complete(), complete()), "x", "request", "oldObject", "spec", "ports"), nil,
		},
		"an old object that was never defaulted": {
			reviewOf("UPDATE", with(complete(), noImageAtAll), with(typical(), noImageAtAll)), nil,
		},
		"being deleted": {
			reviewOf("UPDATE", with(with(complete(), bad), func(b *Box) { b.DeletionTimestamp = new(metav1.Now()) }), complete()), nil,
		},
		"delete": {reviewOf("DELETE", nil, with(complete(), bad)), nil},
	} {
		for webhook, handler := range map[string]http.Handler{"mutating": mutatingWebhook(boxKind), "validating": validatingWebhook(boxKind)} {
			t.Run(webhook+"/"+name, func(t *testing.T) {
				t.Parallel()
				r := ask(t, handler, tc.review)
				if r.Allowed != (tc.want == nil) || len(r.Patch) > 0 {
					t.Fatalf("allowed %v, patch %s, status %v", r.Allowed, r.Patch, r.Result)
				}
				if tc.want == nil {
					return
				}
				want := apierrors.NewInvalid(boxGVK.GroupKind(), "typical", tc.want).Status()
				if diff := cmp.Diff(&want, r.Result); diff != "" {
					t.Errorf("status (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestValidating(t *testing.T) {
	t.Parallel()
	latest := func(b *Box) { b.Spec.Image = "server:latest" }
	const warning = `spec.image: what ":latest" runs changes without notice`
	for name, tc := range map[string]struct {
		review   string
		warnings []string
	}{
		"nothing to say":       {reviewOf("CREATE", complete(), nil), nil},
		"without defaults":     {reviewOf("CREATE", typical(), nil), nil},
		"risky":                {reviewOf("CREATE", with(complete(), latest), nil), []string{warning}},
		"risky as before":      {reviewOf("UPDATE", with(complete(), latest), with(complete(), latest)), []string{warning}},
		"risky in a dry run":   {edit(reviewOf("CREATE", with(complete(), latest), nil), true, "request", "dryRun"), []string{warning}},
		"a status of no shape": {edit(reviewOf("CREATE", complete(), nil), map[string]any{"phase": 7}, "request", "object", "status"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := ask(t, validatingWebhook(boxKind), tc.review)
			if !r.Allowed || len(r.Patch) > 0 {
				t.Fatalf("allowed %v, patch %s, status %v", r.Allowed, r.Patch, r.Result)
			}
			if diff := cmp.Diff(tc.warnings, r.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if r := ask(t, mutatingWebhook(boxKind), tc.review); len(r.Warnings) > 0 {
				t.Errorf("the mutating webhook warns as well: %q", r.Warnings)
			}
		})
	}
	t.Run("of an update", func(t *testing.T) {
		t.Parallel()
		kind := boxKind
		kind.Warn = func(obj, old *Box, _ time.Time) []string {
			if old == nil {
				return nil
			}
			return []string{old.Spec.Image + " becomes " + obj.Spec.Image}
		}
		webhook := validatingWebhook(kind)
		for review, want := range map[string][]string{
			reviewOf("CREATE", with(complete(), latest), nil):                      nil,
			reviewOf("UPDATE", with(complete(), latest), complete()):               {complete().Spec.Image + " becomes server:latest"},
			edit(reviewOf("UPDATE", complete(), nil), nil, "request", "oldObject"): nil,
		} {
			if r := ask(t, webhook, review); !r.Allowed || !slices.Equal(r.Warnings, want) {
				t.Errorf("allowed %v, warnings %q, want %q", r.Allowed, r.Warnings, want)
			}
		}
	})
}

// TestUndecodable: the schema, whose validation follows mutation, reports the values of a wrong type.
// The validating webhook refuses what comes there all the same.
func TestUndecodable(t *testing.T) {
	t.Parallel()
	create := reviewOf("CREATE", complete(), nil)
	four := func(review string) string { return edit(review, "four", "request", "object", "spec", "replicas") }
	for name, tc := range map[string]struct{ review, message string }{
		"a wrong type":                   {four(create), "cannot unmarshal string"},
		"a number that is no integer":    {edit(create, 1.5, "request", "object", "spec", "replicas"), "cannot unmarshal number 1.5"},
		"a value that its type refuses":  {edit(create, map[string]any{"limits": map[string]any{"cpu": "much"}}, "request", "object", "spec", "resources"), "quantities must match"},
		"a spec that is a list":          {edit(create, []int{}, "request", "object", "spec"), "cannot unmarshal array"},
		"a wrong type, as it was before": {edit(four(reviewOf("UPDATE", complete(), complete())), "four", "request", "oldObject", "spec", "replicas"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := ask(t, mutatingWebhook(boxKind), tc.review); !r.Allowed || len(r.Patch) > 0 {
				t.Errorf("the mutating webhook: allowed %v, patch %s", r.Allowed, r.Patch)
			}
			r := ask(t, validatingWebhook(boxKind), tc.review)
			if r.Allowed != (tc.message == "") {
				t.Fatalf("the validating webhook: allowed %v", r.Allowed)
			}
			if r.Allowed {
				return
			}
			if s := r.Result; s.Code != 422 || s.Reason != metav1.StatusReasonInvalid || len(s.Details.Causes) != 1 || !strings.Contains(s.Message, tc.message) {
				t.Errorf("status %+v, want one with %q", s, tc.message)
			}
		})
	}
}

// TestFailures are reviews that can be answered, but not decided.
func TestFailures(t *testing.T) {
	t.Parallel()
	create := reviewOf("CREATE", complete(), nil)
	panics := func(where string) string {
		return reviewOf("CREATE", with(complete(), func(b *Box) { b.Spec.Image = "panic in " + where }), nil)
	}
	both := map[string]http.Handler{"mutating": mutatingWebhook(boxKind), "validating": validatingWebhook(boxKind)}
	for name, tc := range map[string]struct {
		review   string
		handlers map[string]http.Handler
		code     int32
		message  []string
	}{
		"another kind": {
			edit(create, "Crate", "request", "kind", "kind"), both, 400,
			[]string{"test.example.com/v1, Kind=Box", "test.example.com/v1, Kind=Crate"},
		},
		"another group":     {edit(create, "other.example.com", "request", "kind", "group"), both, 400, []string{"other.example.com/v1, Kind=Box"}},
		"another version":   {edit(create, "v2", "request", "kind", "version"), both, 400, []string{"test.example.com/v2, Kind=Box"}},
		"no kind":           {edit(create, null, "request", "kind"), both, 400, []string{"Kind=Box was sent a"}},
		"unknown operation": {edit(create, "PEEK", "request", "operation"), both, 400, []string{`"PEEK"`}},
		"no operation":      {edit(create, nil, "request", "operation"), both, 400, []string{`unknown operation ""`}},
		"null object":       {edit(create, null, "request", "object"), both, 400, []string{"has no object"}},
		"no object":         {edit(create, nil, "request", "object"), both, 400, []string{"has no object"}},
		"panic in Default":  {panics("Default"), both, 500, []string{"panic in Default"}},
		"panic in Validate": {panics("Validate"), both, 500, []string{"panic in Validate"}},
		"panic in Warn":     {panics("Warn"), map[string]http.Handler{"validating": validatingWebhook(boxKind)}, 500, []string{"panic in Warn"}},
	} {
		for webhook, handler := range tc.handlers {
			t.Run(webhook+"/"+name, func(t *testing.T) {
				t.Parallel()
				r := ask(t, handler, tc.review)
				if r.Allowed || len(r.Patch) > 0 || r.Result.Code != tc.code {
					t.Fatalf("allowed %v, patch %s, status %+v", r.Allowed, r.Patch, r.Result)
				}
				for _, want := range tc.message {
					if !strings.Contains(r.Result.Message, want) {
						t.Errorf("message %q, want %q in it", r.Result.Message, want)
					}
				}
			})
		}
	}
}

// TestAsTheServerReads: a review, or an object, with a member that is there twice or with
// text that is not UTF-8 is read as the API server reads it: the last member counts.
func TestAsTheServerReads(t *testing.T) {
	t.Parallel()
	review := reviewOf("CREATE", complete(), nil)
	for name, body := range map[string]string{
		"a member of the review": strings.Replace(review, `"operation":"CREATE"`, `"operation":"PEEK","operation":"CREATE"`, 1),
		"the request":            strings.Replace(review, `"request":{`, `"request":{"uid":"other"},"request":{`, 1),
		"not UTF-8 in a review":  strings.Replace(review, `"kubernetes-admin"`, "\"\xff\"", 1),
		"not UTF-8 in an object": strings.Replace(review, `"serving"`, "\"\xff\"", 1),
		"unknown members":        edit(edit(review, map[string]any{"a": 1}, "request", "new"), 1, "new"),
	} {
		if body == review {
			t.Fatalf("%s: the review is unchanged", name)
		}
		for webhook, handler := range map[string]http.Handler{"mutating": mutatingWebhook(boxKind), "validating": validatingWebhook(boxKind)} {
			if r := ask(t, handler, body); !r.Allowed || len(r.Patch) > 0 {
				t.Errorf("%s, %s: allowed %v, patch %s, status %v", webhook, name, r.Allowed, r.Patch, r.Result)
			}
		}
	}
}

// TestRequestStaysAsItIs: what a handler does not read is blanked in a copy.
func TestRequestStaysAsItIs(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]admission.Handler{"mutating": NewDefaulter(kinds.Erase(boxKind)), "validating": NewValidator(kinds.Erase(boxKind))} {
		stored := with(complete(), func(b *Box) { b.Status.Phase = "Running" })
		req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Kind: metav1.GroupVersionKind(boxGVK), Operation: "UPDATE"}}
		req.Object.Raw, req.OldObject.Raw = []byte(marshal(stored)), []byte(marshal(stored))
		before := *req.DeepCopy()
		if resp := handler.Handle(t.Context(), req); !resp.Allowed {
			t.Errorf("%s: %v", name, resp.Result)
		}
		if diff := cmp.Diff(before, req.AdmissionRequest); diff != "" {
			t.Errorf("%s (-before +after):\n%s", name, diff)
		}
	}
}

// TestNames: what a refusal calls an object that may have no name yet.
func TestNames(t *testing.T) {
	t.Parallel()
	unnamed := func(b *Box) { b.Name, b.GenerateName, b.Spec.Image = "", "box-", "" }
	for name, tc := range map[string]struct{ review, want string }{
		"the request's": {edit(reviewOf("CREATE", with(complete(), func(b *Box) { b.Spec.Image = "" }), nil), `a"b`, "request", "name"), `a"b`},
		"the object's":  {edit(reviewOf("CREATE", with(complete(), func(b *Box) { b.Spec.Image = "" }), nil), nil, "request", "name"), "typical"},
		"generated":     {reviewOf("CREATE", with(complete(), unnamed), nil), "box-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := ask(t, mutatingWebhook(boxKind), tc.review); r.Allowed || r.Result.Details.Name != tc.want {
				t.Errorf("status %+v, want the name %s", r.Result, tc.want)
			}
		})
	}
}

// TestWhatKindsSee: parts that no default and no rule looks at are not decoded.
func TestWhatKindsSee(t *testing.T) {
	t.Parallel()
	stored := with(complete(), func(b *Box) { b.Status.Phase = "Running" })
	type seen struct{ status, managedFields, oldStatus, oldManagedFields bool }
	for name, tc := range map[string]struct {
		webhook func(kinds.Kind[Box]) http.Handler
		review  string
		want    seen
	}{
		"mutating a create":    {mutatingWebhook, reviewOf("CREATE", stored, nil), seen{}},
		"mutating an update":   {mutatingWebhook, reviewOf("UPDATE", stored, stored), seen{managedFields: true, oldManagedFields: true}},
		"validating a create":  {validatingWebhook, reviewOf("CREATE", stored, nil), seen{}},
		"validating an update": {validatingWebhook, reviewOf("UPDATE", stored, stored), seen{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got seen
			kind := boxKind
			kind.Update = nil
			kind.Immutable = func(_, old *Box) field.ErrorList {
				got.oldStatus, got.oldManagedFields = old.Status != BoxStatus{}, old.ManagedFields != nil
				return nil
			}
			kind.Default = func(obj *Box) {
				got.status, got.managedFields = obj.Status != BoxStatus{}, obj.ManagedFields != nil
				if obj.Name != "typical" || obj.Spec.Image == "" {
					t.Errorf("the rest is missing too: %+v", obj)
				}
			}
			if r := ask(t, tc.webhook(kind), tc.review); !r.Allowed || got != tc.want {
				t.Errorf("allowed %v, saw %+v, want %+v", r.Allowed, got, tc.want)
			}
		})
	}
}

// TestConcurrent sends different reviews through one handler at once: memory that
// is used again must not carry anything over.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	handler := mutatingWebhook(boxKind)
	bad := with(complete(), func(b *Box) { b.Spec.Image = "" })
	for range 8 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for range 50 {
				if r := ask(t, handler, reviewOf("CREATE", typical(), nil)); !r.Allowed || len(r.Patch) == 0 {
					t.Errorf("typical: %+v", r)
				}
				if r := ask(t, handler, reviewOf("CREATE", bad, nil)); r.Allowed {
					t.Errorf("bad: %+v", r)
				}
				if r := ask(t, handler, reviewOf("UPDATE", complete(), complete())); !r.Allowed || len(r.Patch) > 0 {
					t.Errorf("complete: %+v", r)
				}
			}
		})
	}
}

func mutatingWebhook(kind kinds.Kind[Box]) http.Handler {
	return &admission.Webhook{Handler: NewDefaulter(kinds.Erase(kind))}
}

func validatingWebhook(kind kinds.Kind[Box]) http.Handler {
	return &admission.Webhook{Handler: NewValidator(kinds.Erase(kind))}
}
