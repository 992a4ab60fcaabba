// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"context"
	"net/http"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/modelbox-operator/modelbox-operator/test/replay"
)

// bench sends the same review again and again.
func bench(b *testing.B, handler http.Handler, review string) {
	b.Helper()
	b.ReportAllocs()
	text, client, answer := []byte(review), replay.New(), []byte(nil)
	for b.Loop() {
		answer = client.Post(handler, text)
	}
	if !bytes.Contains(answer, []byte(`"allowed":true`)) {
		b.Fatalf("not allowed: %s", answer)
	}
}

func BenchmarkHandlers(b *testing.B) {
	changed, unchanged := typical(), complete()
	update := reviewOf("UPDATE", with(complete(), func(b *Box) { b.Spec.Size = "large" }), complete())
	b.Logf("objects of %d and %d bytes", len(marshal(changed)), len(marshal(unchanged)))
	ours, theirs := mutatingWebhook(boxKind), typedDefaulter(b)
	b.Run("mutate/changed/ours", func(b *testing.B) { bench(b, ours, reviewOf("CREATE", changed, nil)) })
	b.Run("mutate/changed/controller-runtime", func(b *testing.B) { bench(b, theirs, reviewOf("CREATE", changed, nil)) })
	b.Run("mutate/unchanged/ours", func(b *testing.B) { bench(b, ours, reviewOf("CREATE", unchanged, nil)) })
	b.Run("mutate/unchanged/controller-runtime", func(b *testing.B) { bench(b, theirs, reviewOf("CREATE", unchanged, nil)) })
	b.Run("mutate/update/ours", func(b *testing.B) { bench(b, ours, update) })
	b.Run("mutate/update/controller-runtime", func(b *testing.B) { bench(b, theirs, update) })
	ours, theirs = validatingWebhook(boxKind), typedValidator(b)
	update = reviewOf("UPDATE", with(complete(), func(b *Box) { b.Spec.Image = "server:2" }), complete())
	b.Run("validate/create/ours", func(b *testing.B) { bench(b, ours, reviewOf("CREATE", unchanged, nil)) })
	b.Run("validate/create/controller-runtime", func(b *testing.B) { bench(b, theirs, reviewOf("CREATE", unchanged, nil)) })
	b.Run("validate/update/ours", func(b *testing.B) { bench(b, ours, update) })
	b.Run("validate/update/controller-runtime", func(b *testing.B) { bench(b, theirs, update) })
}

// BenchmarkDecode is the part of the work that any handler has, whatever it does.
func BenchmarkDecode(b *testing.B) {
	b.ReportAllocs()
	raw := []byte(marshal(typical()))
	for b.Loop() {
		if _, err := decode[Box](raw); err != nil {
			b.Fatal(err)
		}
	}
}

// theirBox makes the same functions what controller-runtime's handlers take.
type theirBox struct{}

func (theirBox) Default(_ context.Context, b *Box) error {
	defaultBox(b, nil, nil)
	return nil
}

func (theirBox) ValidateCreate(_ context.Context, b *Box) (admission.Warnings, error) {
	return warnBox(b), validateBox(b).ToAggregate()
}

func (theirBox) ValidateUpdate(_ context.Context, _, b *Box) (admission.Warnings, error) {
	return warnBox(b), validateBox(b).ToAggregate()
}

func (theirBox) ValidateDelete(context.Context, *Box) (admission.Warnings, error) { return nil, nil }

func boxScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(boxGVK, &Box{})
	metav1.AddToGroupVersion(scheme, boxGVK.GroupVersion())
	return scheme
}

func typedDefaulter(testing.TB) http.Handler {
	return admission.WithDefaulter[*Box](boxScheme(), theirBox{})
}

func typedValidator(testing.TB) http.Handler {
	return admission.WithValidator[*Box](boxScheme(), theirBox{})
}

// reviewOf is a review as the API server sends it.
func reviewOf(operation string, obj, old *Box) string {
	dryRun := false
	r := &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID:             "705ab4f5-6393-11e8-b7cc-42010a800002",
			Kind:            metav1.GroupVersionKind(boxGVK),
			Resource:        metav1.GroupVersionResource{Group: boxGVK.Group, Version: boxGVK.Version, Resource: "boxes"},
			RequestKind:     new(metav1.GroupVersionKind(boxGVK)),
			RequestResource: &metav1.GroupVersionResource{Group: boxGVK.Group, Version: boxGVK.Version, Resource: "boxes"},
			Operation:       admissionv1.Operation(operation),
			Namespace:       "default",
			DryRun:          &dryRun,
			Options:         runtime.RawExtension{Raw: []byte(`{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"kubectl-client-side-apply","fieldValidation":"Strict"}`)},
		},
	}
	r.Request.UserInfo.Username = "kubernetes-admin"
	r.Request.UserInfo.Groups = []string{"kubeadm:cluster-admins", "system:authenticated"}
	if obj != nil {
		r.Request.Name = obj.Name
		r.Request.Object.Raw = []byte(marshal(obj))
	}
	if old != nil {
		r.Request.OldObject.Raw = []byte(marshal(old))
	}
	return marshal(r)
}
