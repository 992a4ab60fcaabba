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

// webhook measures the CPU of both webhooks for one created object, from the bytes of the request to
// those of the answer, beside those that controller-runtime makes of a typed defaulter and validator
// with the same defaults and rules.
func (b *bench) webhook(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, side := range []string{"ours", "typed"} {
		out, err := exec.CommandContext(ctx, self, admissions, side).Output()
		if err != nil {
			return fmt.Errorf("measuring %s: %w", side, err)
		}
		microseconds, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
		if err != nil {
			return err
		}
		b.record(side+": CPU per admission, µs", microseconds)
	}
	b.ratio("ours: CPU per admission / typed", "ours: CPU per admission, µs", "typed: CPU per admission, µs")
	return nil
}

// measureAdmissions prints the microseconds of CPU that an admission takes a side.
func measureAdmissions(side string) error {
	mutating, validating := handlers(side)
	written, complete := review(modelboxes.Written(0)), review(modelboxes.ModelBox(0))
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

// review is a review of an object's creation as the API server sends it.
func review(box *modelv1.ModelBox) []byte {
	box.UID = "705ab4f5-6393-11e8-b7cc-42010a800003"
	raw, err := json.Marshal(box)
	if err != nil {
		panic(err) // Its types have JSON.
	}
	gvk := metav1.GroupVersionKind(modelv1.SchemeGroupVersion.WithKind("ModelBox"))
	gvr := metav1.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: "modelboxes"}
	text, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "705ab4f5-6393-11e8-b7cc-42010a800002", Kind: gvk, Resource: gvr, RequestKind: &gvk, RequestResource: &gvr,
			Operation: admissionv1.Create, Namespace: box.Namespace, Name: box.Name, Object: apiruntime.RawExtension{Raw: raw},
			Options: apiruntime.RawExtension{Raw: []byte(`{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}`)},
		},
	})
	if err != nil {
		panic(err)
	}
	return text
}
