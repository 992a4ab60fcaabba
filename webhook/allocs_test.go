// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/test/replay"
)

// TestAllocations holds what an admission of a ModelBox of 1.9 kB allocates, both
// webhooks, to what it is today. Raise a ceiling only with a reason; lower it when
// the figure falls. (The race detector makes pools forget at random, so it is
// not counted there.)
func TestAllocations(t *testing.T) {
	mux := webhooks(t)
	review := typicalReview(t)
	for path, ceiling := range map[string]float64{
		"/mutate-model-github-com-v1-modelbox":   51,
		"/validate-model-github-com-v1-modelbox": 48,
	} {
		handler, _ := mux.Handler(httptest.NewRequest(http.MethodPost, path, nil))
		client, answer := replay.New(), []byte(nil)
		got := testing.AllocsPerRun(200, func() { answer = client.Post(handler, review) })
		if !bytes.Contains(answer, []byte(`"allowed":true`)) {
			t.Fatalf("%s: %s", path, answer)
		}
		if got > ceiling {
			t.Errorf("%s: %v allocations, want at most %v", path, got, ceiling)
		}
	}
}

// typicalReview is a review of the creation of a ModelBox that leaves much to
// defaulting, as the API server sends it.
func typicalReview(t *testing.T) []byte {
	t.Helper()
	box := &modelv1.ModelBox{TypeMeta: metav1.TypeMeta{APIVersion: "model.github.com/v1", Kind: "ModelBox"}}
	box.Name, box.Namespace, box.UID = "typical", "default", "5b1d6f0e-6f4b-4a7e-9d0a-0c1d2e3f4a5b"
	box.Labels = map[string]string{"team": "serving", "stage": "production"}
	box.Annotations = map[string]string{"example.com/owner": "someone@example.com"}
	box.Spec.Image = "registry.example.com/team/server:1.2"
	box.Spec.Ports = []modelv1.Port{{Name: "http", Port: 8080}, {Name: "grpc", Port: 9000}}
	box.Spec.LivenessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}},
		PeriodSeconds: 10, FailureThreshold: 3,
	}
	for _, name := range []string{"MODEL_NAME", "MODEL_PATH", "LOG_LEVEL", "MAX_BATCH", "ENDPOINT"} {
		box.Spec.Envs = append(box.Spec.Envs, corev1.EnvVar{Name: name, Value: strings.Repeat(strings.ToLower(name), 2)})
	}
	box.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "kubectl-client-side-apply", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "model.github.com/v1",
		Time: new(metav1.Unix(1700000000, 0)), FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{".":{},"f:example.com/owner":{}},"f:labels":{".":{},` +
			`"f:stage":{},"f:team":{}}},"f:spec":{".":{},"f:envs":{},"f:image":{},"f:livenessProbe":{".":{},"f:failureThreshold":{},` +
			`"f:httpGet":{".":{},"f:path":{},"f:port":{}},"f:periodSeconds":{}},"f:ports":{}}}`),
	}}
	spec, err := json.Marshal(box.Spec)
	if err != nil {
		t.Fatal(err)
	}
	box.Annotations[corev1.LastAppliedConfigAnnotation] = `{"apiVersion":"model.github.com/v1","kind":"ModelBox","spec":` + string(spec) + `}`
	raw, err := json.Marshal(box)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the object has %d bytes", len(raw))
	gvk := metav1.GroupVersionKind(modelv1.SchemeGroupVersion.WithKind("ModelBox"))
	gvr := metav1.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: "modelboxes"}
	review, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "705ab4f5-6393-11e8-b7cc-42010a800002", Kind: gvk, Resource: gvr, RequestKind: &gvk, RequestResource: &gvr,
			Operation: admissionv1.Create, Namespace: box.Namespace, Name: box.Name, DryRun: new(false),
			Object:  runtime.RawExtension{Raw: raw},
			Options: runtime.RawExtension{Raw: []byte(`{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}`)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return review
}
