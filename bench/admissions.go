// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/bench/modelboxes"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/webhook/admission"
)

// admissions is the argument that makes this program measure one side in a process of its own, so
// that neither the garbage of the other side nor of the rest is in it.
const admissions = "admissions"

// webhook measures the CPU of both webhooks for one created object, and for an update of its image,
// from the bytes of the request to those of the answer, beside those that controller-runtime makes of
// a typed defaulter and validator with the same defaults and rules.
func (b *bench) webhook(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for operation, row := range map[admissionv1.Operation]string{admissionv1.Create: "admission", admissionv1.Update: "admission of an update"} {
		for _, side := range []string{"ours", "typed"} {
			out, err := exec.CommandContext(ctx, self, admissions, side, string(operation)).Output()
			if err != nil {
				return fmt.Errorf("measuring %s: %w", side, err)
			}
			microseconds, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
			if err != nil {
				return err
			}
			b.record(side+": CPU per "+row+", µs", microseconds)
		}
		b.ratio("ours: CPU per "+row+" / typed", "ours: CPU per "+row+", µs", "typed: CPU per "+row+", µs")
	}
	return nil
}

// measureAdmissions prints the microseconds of CPU that an admission takes a side.
func measureAdmissions(side string, operation admissionv1.Operation) error {
	mutating, validating := handlers(side)
	written, complete := review(modelboxes.Written(0), nil), review(modelboxes.ModelBox(0), nil)
	if operation == admissionv1.Update {
		old := modelboxes.Applied(modelboxes.ModelBox(0))
		changed := modelboxes.Applied(modelboxes.ModelBox(0))
		changed.Spec.Image = "registry.example.com/team/server:1.3"
		written = review(changed, old)
		complete = written
	}
	const count = 5000
	var before time.Duration
	for i := range count + count/10 { // The first ones fill pools and caches.
		if i == count/10 {
			before, _ = cpu(os.Getpid())
		}
		for handler, body := range map[http.Handler][]byte{mutating: written, validating: complete} {
			request := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
			request.Header.Set("Content-Type", "application/json")
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, request)
			if !strings.Contains(answer.Body.String(), `"allowed":true`) {
				return fmt.Errorf("not allowed: %s", answer.Body)
			}
		}
	}
	runtime.GC() // What is left over was caused by them too.
	after, err := cpu(os.Getpid())
	fmt.Println(float64((after - before).Microseconds()) / count)
	return err
}

func handlers(side string) (mutating, validating *ctrladmission.Webhook) {
	if side == "ours" {
		return &ctrladmission.Webhook{Handler: admission.NewDefaulter(kinds.Erase(modelbox.Kind()))}, &ctrladmission.Webhook{Handler: admission.NewValidator(kinds.Erase(modelbox.Kind()))}
	}
	scheme := apiruntime.NewScheme()
	_ = modelv1.AddToScheme(scheme) // It registers types that exist.
	return ctrladmission.WithDefaulter[*modelv1.ModelBox](scheme, typed{}), ctrladmission.WithValidator[*modelv1.ModelBox](scheme, typed{})
}

// typed is a defaulter and validator as tutorials write one.
type typed struct{}

// Default implements admission.Defaulter.
func (typed) Default(_ context.Context, box *modelv1.ModelBox) error {
	modelbox.Default(box)
	return nil
}

// ValidateCreate implements admission.Validator.
func (typed) ValidateCreate(_ context.Context, box *modelv1.ModelBox) (ctrladmission.Warnings, error) {
	return modelbox.Warn(box), modelbox.Validate(box).ToAggregate()
}

// ValidateUpdate implements admission.Validator.
func (t typed) ValidateUpdate(ctx context.Context, _, box *modelv1.ModelBox) (ctrladmission.Warnings, error) {
	return t.ValidateCreate(ctx, box)
}

// ValidateDelete implements admission.Validator.
func (typed) ValidateDelete(context.Context, *modelv1.ModelBox) (ctrladmission.Warnings, error) {
	return nil, nil
}

// review is a review of an object's creation, or of its update if it has an old state, as the API server
// sends it.
func review(box, old *modelv1.ModelBox) []byte {
	gvk := metav1.GroupVersionKind(modelv1.SchemeGroupVersion.WithKind("ModelBox"))
	gvr := metav1.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: "modelboxes"}
	request := &admissionv1.AdmissionRequest{
		UID: "705ab4f5-6393-11e8-b7cc-42010a800002", Kind: gvk, Resource: gvr, RequestKind: &gvk, RequestResource: &gvr,
		Operation: admissionv1.Create, Namespace: box.Namespace, Name: box.Name, Object: stored(box),
		Options: apiruntime.RawExtension{Raw: []byte(`{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}`)},
	}
	if old != nil {
		request.Operation, request.OldObject = admissionv1.Update, stored(old)
		request.Options.Raw = []byte(`{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1"}`)
	}
	text, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
	})
	if err != nil {
		panic(err)
	}
	return text
}

// stored is an object in a review.
func stored(box *modelv1.ModelBox) apiruntime.RawExtension {
	box.UID = "705ab4f5-6393-11e8-b7cc-42010a800003"
	raw, err := json.Marshal(box)
	if err != nil {
		panic(err) // Its types have JSON.
	}
	return apiruntime.RawExtension{Raw: raw}
}
