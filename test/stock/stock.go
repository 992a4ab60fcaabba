// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stock sends admission reviews through the webhook transport of
// controller-runtime, to compare its answers with those of the project's own.
package stock

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Compare returns how an answer to a review differs from the one that
// controller-runtime gives with the same handler, "" if they say the same.
func Compare(handler admission.Handler, review, answer []byte) (string, error) {
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(review))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	(&admission.Webhook{Handler: handler}).ServeHTTP(w, r)
	want, err := decode(w.Body.Bytes())
	if err != nil {
		return "", err
	}
	got, err := decode(answer)
	if err != nil {
		return "", err
	}
	return cmp.Diff(want, got), nil
}

// decode decodes an answer without what the API server ignores, or what cannot be the
// same: the status of an allowed request, and the words about a panic.
func decode(answer []byte) (*admissionv1.AdmissionReview, error) {
	review := &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(answer, review); err != nil || review.Response == nil {
		return nil, fmt.Errorf("the answer is not a review: %w: %s", err, answer)
	}
	if review.Response.Allowed {
		review.Response.Result = nil
	} else if review.Response.Result.Code == http.StatusInternalServerError {
		review.Response.Result = &metav1.Status{Code: http.StatusInternalServerError}
	}
	return review, nil
}
